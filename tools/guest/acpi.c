/* ACPI, as far as needed: where the clock and the power button are, how to switch off, how many CPUs there are. */
#include "machine.h"
#include "text.h"

struct table {
  char name[4];
  uint32_t length;
  uint8_t more[28];
  uint8_t body[];
} __attribute__((packed));

enum { BUTTON = 0x100, ACPI_ON = 1, SLEEP_NOW = 0x2000 };

uint16_t clock_port, power_status_port, power_interrupt = 9;
static uint16_t control_port;
static uint16_t sleep_type;
static uint32_t cpus = 1;

static uint32_t read32(const void *at) { return *(const uint32_t *)at; }

static const uint8_t *find_root_pointer(void) {
  for (const uint8_t *at = (const uint8_t *)0xe0000; at < (const uint8_t *)0x100000; at += 16)
    if (starts_with((const char *)at, "RSD PTR ")) return at;
  return NULL;
}

static const struct table *find_table(const struct table *root, const char *name) {
  for (uint32_t offset = 0; offset + sizeof *root < root->length; offset += 4) {
    const struct table *table = (const struct table *)read32(root->body + offset);
    if (starts_with(table->name, name)) return table;
  }
  return NULL;
}

/* The sleep type of S5 is in byte code: Name(_S5_, Package { type, ... }). A small number is its own byte, or follows 0x0a. */
static void read_sleep_type(const struct table *code) {
  const uint8_t *last = (const uint8_t *)code + code->length - 8;
  for (const uint8_t *at = code->body; at < last; at++) {
    if (!starts_with((const char *)at, "_S5_") || at[4] != 0x12) continue;
    at += 5;
    at += (*at >> 6) + 2; /* over the package's length and count */
    if (*at == 0x0a) at++;
    sleep_type = (uint16_t)((*at <= 7 ? *at : 0) << 10);
    return;
  }
}

static void read_fixed_table(const struct table *fixed) {
  const uint8_t *start = (const uint8_t *)fixed;
  power_interrupt = *(const uint16_t *)(start + 46);
  power_status_port = (uint16_t)read32(start + 56);
  control_port = (uint16_t)read32(start + 64);
  clock_port = (uint16_t)read32(start + 76);
  read_sleep_type((const struct table *)read32(start + 40));
  uint16_t command_port = (uint16_t)read32(start + 48);
  if (command_port && !(in16(control_port) & ACPI_ON)) out8(command_port, start[52]);
  out16(power_status_port, BUTTON); /* forget a press from before */
  out16(power_status_port + start[88] / 2, BUTTON);
}

static void count_cpus(const struct table *controllers) {
  const uint8_t *end = (const uint8_t *)controllers + controllers->length;
  cpus = 0;
  for (const uint8_t *entry = controllers->body + 8; entry < end && entry[1]; entry += entry[1])
    if (entry[0] == 0 && entry[4] & 1) cpus++;
}

void acpi_start(uint32_t root_pointer) {
  const uint8_t *pointer = root_pointer ? (const uint8_t *)root_pointer : find_root_pointer();
  const struct table *root = pointer ? (const struct table *)read32(pointer + 16) : NULL;
  const struct table *fixed = root ? find_table(root, "FACP") : NULL;
  if (fixed && read32((const uint8_t *)fixed + 76)) read_fixed_table(fixed);
  const struct table *controllers = root ? find_table(root, "APIC") : NULL;
  if (controllers) count_cpus(controllers);
}

uint32_t acpi_cpus(void) { return cpus; }

bool power_button_pressed(void) {
  bool pressed = in16(power_status_port) & BUTTON;
  if (pressed) out16(power_status_port, BUTTON);
  return pressed;
}

/* The machine may take a moment to go. */
void switch_off(void) {
  console_drain();
  out16(control_port, sleep_type | SLEEP_NOW);
  for (uint64_t enough = clock_now() + CLOCK_HERTZ; clock_now() < enough;)
    ;
}
