/* Starts the Linux that follows it, by the 32-bit boot protocol (Documentation/arch/x86/boot.rst of the kernel). */
#include <stdint.h>

struct start_information { /* of PVH */
  uint32_t magic, version, flags, module_count;
  uint64_t modules, command_line, root_pointer, memory_map;
  uint32_t memory_map_entries, reserved;
};
struct pvh_range {
  uint64_t start, size;
  uint32_t kind, reserved;
};
struct linux_range {
  uint64_t start, size;
  uint32_t kind;
} __attribute__((packed));

enum {
  ROOT_POINTER = 0x70, RANGE_COUNT = 0x1e8, SETUP_SECTORS = 0x1f1, HEADER_SIZE = 0x201, LOADER = 0x210, RAM_DISK = 0x218,
  RAM_DISK_SIZE = 0x21c, COMMAND_LINE = 0x228, PREFERRED = 0x258, RANGES = 0x2d0, MOST_RANGES = 128, OTHER_LOADER = 0xff
};

extern const uint8_t kernel[], kernel_end[], initrd[], initrd_end[];
uint8_t boot_params[4096] __attribute__((aligned(4096)));

static void copy(uint8_t *to, const uint8_t *from, uint32_t size) {
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

static void put(uint32_t offset, uint32_t value) { *(uint32_t *)(boot_params + offset) = value; }

static void put_memory(const struct start_information *start) {
  const struct pvh_range *from = (const struct pvh_range *)(uint32_t)start->memory_map;
  struct linux_range *to = (struct linux_range *)(boot_params + RANGES);
  uint32_t count = start->memory_map_entries < MOST_RANGES ? start->memory_map_entries : MOST_RANGES;
  for (uint32_t one = 0; one < count; one++) to[one] = (struct linux_range){from[one].start, from[one].size, from[one].kind};
  boot_params[RANGE_COUNT] = (uint8_t)count;
}

uint32_t prepare(const struct start_information *start) {
  copy(boot_params + SETUP_SECTORS, kernel + SETUP_SECTORS, 0x202 + kernel[HEADER_SIZE] - SETUP_SECTORS);
  boot_params[LOADER] = OTHER_LOADER;
  put(RAM_DISK, (uint32_t)initrd);
  put(RAM_DISK_SIZE, (uint32_t)(initrd_end - initrd));
  put(COMMAND_LINE, (uint32_t)start->command_line);
  put(ROOT_POINTER, (uint32_t)start->root_pointer);
  put_memory(start);
  const uint8_t *code = kernel + (kernel[SETUP_SECTORS] + 1) * 512;
  uint32_t where = *(const uint32_t *)(kernel + PREFERRED);
  copy((uint8_t *)where, code, (uint32_t)(kernel_end - code));
  return where;
}
