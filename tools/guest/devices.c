/* What else can be seen of the machine, cheaply: the CPU's name, disks, something random. */
#include "machine.h"
#include "text.h"

void say_cpu(void) {
  uint32_t name[13] = {0};
  uint32_t leaf[4];
  cpuid(0x80000000, leaf);
  if (leaf[0] >= 0x80000004)
    for (uint32_t part = 0; part < 3; part++) cpuid(0x80000002 + part, name + part * 4);
  const char *text = (const char *)name;
  while (*text == ' ') text++;
  say("cpus=%u cpu=%s\n", acpi_cpus(), *text ? text : "unnamed");
}

static uint32_t configuration(uint32_t bus, uint32_t slot, uint32_t offset) {
  out32(0xcf8, 0x80000000 | bus << 16 | slot << 11 | offset);
  return in32(0xcfc);
}

enum { OLD_VIRTIO_DISK = 0x10011af4, NEW_VIRTIO_DISK = 0x10421af4, PORTS_ON = 1 };

/* The old interface of a virtio disk tells its size to whoever asks; the new one would need a driver. */
static void say_disk_size(uint32_t bus, uint32_t slot) {
  if (!(configuration(bus, slot, 4) & PORTS_ON)) return;
  uint16_t port = (uint16_t)(configuration(bus, slot, 0x10) & ~3u);
  uint64_t sectors = in32(port + 0x14) | (uint64_t)in32(port + 0x18) << 32;
  say(" size=%m", (uint32_t)(sectors >> 1));
}

static void look_at(uint32_t bus, uint32_t slot) {
  uint32_t who = configuration(bus, slot, 0);
  if (who != OLD_VIRTIO_DISK && who != NEW_VIRTIO_DISK) return;
  say("disk virtio bus=%u slot=%u", bus, slot);
  if (who == OLD_VIRTIO_DISK) say_disk_size(bus, slot);
  say("\n");
}

void say_disks(void) {
  for (uint32_t bus = 0; bus < 4; bus++)
    for (uint32_t slot = 0; slot < 32; slot++) look_at(bus, slot);
}

static uint32_t clock_chip(uint8_t field) {
  out8(0x70, field);
  return in8(0x71);
}

/* The time of day tells boots apart, the cycle counter those of the same second. */
uint32_t chance(uint32_t salt) {
  uint32_t low, high, features[4], luck = 0;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  cpuid(1, features);
  if (features[2] & 1u << 30) __asm__ volatile("rdrand %0" : "=r"(luck));
  uint32_t sum = salt;
  for (uint8_t field = 0; field < 10; field++) sum = (sum ^ clock_chip(field)) * 16777619u;
  sum = (sum ^ low ^ luck) * 2654435761u;
  return (sum ^ sum >> 15 ^ high) * 2246822519u;
}
