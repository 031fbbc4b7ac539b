/* A Linux and its initial RAM disk as one file, which `qemu -kernel` starts by the PVH note: in flat 32-bit mode, the start
   information in %ebx. */
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
        push %ebx
        call prepare                    /* the answer is where Linux begins */
        mov $boot_params, %esi
        xor %ebp, %ebp
        xor %edi, %edi
        xor %ebx, %ebx
        jmp *%eax

        .section .rodata
        .global kernel, kernel_end, initrd, initrd_end
        .align 16
kernel: .incbin KERNEL
kernel_end:
        .align 4096
initrd: .incbin INITRD
initrd_end:

        .bss
        .align 16
        .skip 4096
stack_top:
        .section .note.GNU-stack, "", @progbits
