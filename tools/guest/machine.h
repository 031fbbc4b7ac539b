/* The machine around the guest: firmware tables, power, time, devices. */
#pragma once
#include "hardware.h"

enum { CLOCK_HERTZ = 3579545 };

void acpi_start(uint32_t root_pointer); /* 0: look for it where the firmware keeps it */
uint32_t acpi_cpus(void);
bool power_button_pressed(void); /* asks the hardware, and takes the press back */
bool power_button_waiting(void); /* it was pressed, and nobody has asked yet */
bool power_button_seen(void);    /* once per press */
void switch_off(void);           /* returns only where that does not work */

void interrupts_start(void);
uint64_t clock_now(void);           /* in 1/CLOCK_HERTZ s of guest time: stands still while the guest is paused or moves */
void wake_up_in(uint32_t duration); /* an interrupt after that time */

void say_cpu(void);
void say_disks(void);
uint32_t chance(uint32_t salt); /* differs from boot to boot */

extern uint16_t clock_port, power_status_port, power_interrupt;
