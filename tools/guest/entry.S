/* How the guest begins. The PVH note makes `qemu -kernel` start it in flat 32-bit mode, the start information in %ebx.
   PVH and not multiboot: it hands over the command line as it was written, without the kernel's path in front. */
        .section .note.pvh, "a", @note
        .align 4
        .long 4, 8, 18                  /* length of the name, length of the address, XEN_ELFNOTE_PHYS32_ENTRY */
        .asciz "Xen"
        .long entry, 0                  /* QEMU reads eight bytes, also of a 32-bit ELF */

        .text
        .global entry
entry:
        cli
        cld
        mov $stack_top, %esp
        lgdt gdt_pointer
        ljmp $0x08, $flat
flat:
        mov $0x10, %eax
        mov %eax, %ds
        mov %eax, %es
        mov %eax, %fs
        mov %eax, %gs
        mov %eax, %ss
        push %ebx
        call guest_main
stopped:
        cli
        hlt
        jmp stopped

/* An exception with no room to handle it ends in a triple fault: what a guest's crash looks like from outside. */
        .global crash_hard
crash_hard:
        lidt no_interrupts
        int3

        .section .rodata
        .align 8
gdt:    .quad 0
        .quad 0x00cf9a000000ffff        /* code, all of 4 GiB */
        .quad 0x00cf92000000ffff        /* data, all of 4 GiB */
gdt_pointer:
        .word . - gdt - 1
        .long gdt
no_interrupts:
        .word 0
        .long 0

        .bss
        .align 16
        .skip 16384
stack_top:
        .section .note.GNU-stack, "", @progbits
