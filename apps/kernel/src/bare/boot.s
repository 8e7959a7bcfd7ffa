# Entry of the first CPU by PVH (32 bits, paging off, start info in ebx), and of the others by
# their startup interrupt (16 bits, at TRAMPOLINE). Both go to long mode on the tables below, which
# map the first 4 GiB to themselves by pages of 2 MiB.

.set TRAMPOLINE, 0x8000
.set STACK_SHIFT, 18                    # 256 KiB for each CPU: a page heap lies on the stack
.set CPUS, 8                            # as `MOST` in cpus.rs

.section .note.pvh, "a", @note
  .long 4, 4, 18                        # lengths of name and value; XEN_ELFNOTE_PHYS32_ENTRY
  .asciz "Xen"
  .long pvh_entry

# PAE, OSFXSR and OSXMMEXCPT (compiled code uses SSE); long mode; paging, write protection.
.macro TO_LONG_MODE
  movl $boot_pml4, %eax
  movl %eax, %cr3
  movl %cr4, %eax
  orl $0x620, %eax
  movl %eax, %cr4
  movl $0xc0000080, %ecx
  rdmsr
  orl $0x100, %eax
  wrmsr
  movl %cr0, %eax
  andl $0x9ffffffb, %eax                # no emulated FPU, caches on
  orl $0x80010003, %eax
  movl %eax, %cr0
.endm

.section .text.boot, "ax"
.code32
.globl pvh_entry
pvh_entry:
  cli
  movl %ebx, %edi
  TO_LONG_MODE
  lgdt boot_gdt_pointer
  ljmp $8, $first_cpu

.code64
first_cpu:
  movw $16, %ax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %ss
  movl %edi, %edi                       # clears the upper half
  leaq stacks + (1 << STACK_SHIFT)(%rip), %rsp
  xorl %ebp, %ebp
  call begin
  ud2

other_cpu:
  movl $1, %eax
  lock xaddl %eax, next_cpu(%rip)
  cmpl $CPUS, %eax
  jae too_many
  movl %eax, %edi
  incl %eax
  shlq $STACK_SHIFT, %rax
  leaq stacks(%rip), %rsp
  addq %rax, %rsp
  xorl %ebp, %ebp
  call begin_other
  ud2
too_many:
  cli
  hlt
  jmp too_many

.section .rodata.trampoline, "a"
.globl trampoline_begin
.globl trampoline_end
.code16
trampoline_begin:
  cli
  xorw %ax, %ax
  movw %ax, %ds
  lgdtl TRAMPOLINE + (trampoline_gdt_pointer - trampoline_begin)
  movl %cr0, %eax
  orl $1, %eax
  movl %eax, %cr0
  ljmpl $24, $(TRAMPOLINE + (protected - trampoline_begin))
.code32
protected:
  movw $16, %ax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %ss
  TO_LONG_MODE
  ljmpl $8, $other_cpu
.balign 8
trampoline_gdt:
  .quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff, 0x00cf9a000000ffff
trampoline_gdt_pointer:
  .word 31
  .long TRAMPOLINE + (trampoline_gdt - trampoline_begin)
trampoline_end:
.code64

.section .data.boot, "aw"
next_cpu: .long 1
.balign 8
boot_gdt:
  .quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff, 0x00cf9a000000ffff
boot_gdt_pointer:
  .word 31
  .long boot_gdt
.balign 4096
boot_pml4:
  .quad boot_pdpt + 3
  .fill 511, 8, 0
.globl boot_pdpt
boot_pdpt:
  .quad boot_pd + 3, boot_pd + 0x1003, boot_pd + 0x2003, boot_pd + 0x3003
  .fill 508, 8, 0
boot_pd:
  .set page, 0
  .rept 2048
  .quad (page << 21) + 0x83
  .set page, page + 1
  .endr

.section .bss.boot, "aw", @nobits
.balign 4096
stacks: .skip CPUS << STACK_SHIFT

# Exceptions: a stub pushes its number; those without an error code push a zero before it. They run
# on a stack of their own, since compiled code keeps values below its stack pointer.
.section .text.exceptions, "ax"
.set number, 0
.balign 16
.globl exception_stubs
exception_stubs:
.rept 32
  .balign 16
  .if ((0x60227d00 >> number) & 1) == 0
  pushq $0
  .endif
  pushq $number
  jmp exception_common
  .set number, number + 1
.endr
exception_common:
  popq %rdi                             # number, error code, address of the instruction
  popq %rsi
  movq (%rsp), %rdx
  movq %cr2, %rcx
  andq $-16, %rsp
  call exception
  ud2

# A page fault may be mended: registers that compiled code may change are kept.
.globl page_fault_stub
.balign 16
page_fault_stub:
  pushq %rbp
  movq %rsp, %rbp
  pushq %rax
  pushq %rcx
  pushq %rdx
  pushq %rsi
  pushq %rdi
  pushq %r8
  pushq %r9
  pushq %r10
  pushq %r11
  subq $512, %rsp
  andq $-16, %rsp
  fxsave (%rsp)
  movq %cr2, %rdi
  movq 8(%rbp), %rsi                    # error code
  movq 16(%rbp), %rdx                   # address of the instruction
  call page_fault
  fxrstor (%rsp)
  leaq -72(%rbp), %rsp
  popq %r11
  popq %r10
  popq %r9
  popq %r8
  popq %rdi
  popq %rsi
  popq %rdx
  popq %rcx
  popq %rax
  popq %rbp
  addq $8, %rsp
  iretq

# An interrupt that only ends `hlt`: acknowledged, nothing else.
.globl wake_stub
.balign 16
wake_stub:
  pushq %rax
  movl $0xfee000b0, %eax
  movl $0, (%rax)
  popq %rax
  iretq
.section .note.GNU-stack, "", @progbits
.text
