#include "textflag.h"

// Block decoders of the quantised types, AVX-512. Layouts: engine/lm/dequant.go, which is also their oracle. A product
// and the sum after it are two roundings, as there; nothing is fused. DI is dst, SI the block, CX the blocks left.

#define ARGS \
	MOVQ dst+0(FP), DI \
	MOVQ src+8(FP), SI \
	MOVQ blocks+16(FP), CX

// BYTES fills register r with the byte pattern v.
#define BYTES(v, r) \
	MOVL $v, AX \
	VPBROADCASTD AX, r

// HALF spreads the f16 at off into the lanes of z; y is its lower part.
#define HALF(off, y, z) \
	VPBROADCASTW off(SI), y \
	VCVTPH2PS y, z

// SCALE spreads the f16 at the start of a block into Z1 and leaves it and the next one as X7.
#define SCALE \
	VCVTPH2PS (SI), X7 \
	VBROADCASTSS X7, Z1

// LOOKUP replaces 16 indices by the values of a table of 16: nibbles are decoded by one instruction, whose low four
// bits it takes of each index, from the 16 values that a block can hold.
#define LOOKUP(table, indices, dst) \
	VPERMPS table, indices, dst

// FLOATS turns the 32 signed bytes of Y0 into floats in Z2 and Z3.
#define FLOATS \
	VPMOVSXBD X0, Z2 \
	VEXTRACTI128 $1, Y0, X3 \
	VPMOVSXBD X3, Z3 \
	VCVTDQ2PS Z2, Z2 \
	VCVTDQ2PS Z3, Z3

#define STORE(off) \
	VMOVUPS Z2, off(DI) \
	VMOVUPS Z3, (off+64)(DI)

// AHEAD is how far before its use a block is fetched from memory: rows are read once, and the processor's own
// prefetching stops at every 4 KiB page. Without it the decoders run at 0.6 of this speed (Q5_0, Q8_0; Xeon, 2 cores).
#define AHEAD 4096

// NEXT moves on by one block and n floats.
#define NEXT(bytes, floats) \
	ADDQ $bytes, SI \
	ADDQ $(floats*4), DI \
	DECQ CX

#define END \
	VZEROUPPER \
	RET

// SCALES unpacks the 12 bytes at 4 into eight steps d·scale at 0(SP) and eight bases dmin·min at 32(SP).
#define SCALES \
	MOVL 4(SI), R8 \
	MOVL 8(SI), R9 \
	MOVL 12(SI), R10 \
	MOVL R8, R11 \
	MOVL R9, R12 \
	MOVL R10, R13 \
	ANDL $0x3f3f3f3f, R8 \
	ANDL $0x3f3f3f3f, R9 \
	SHRL $2, R11 \
	SHRL $2, R12 \
	SHRL $4, R13 \
	ANDL $0x30303030, R11 \
	ANDL $0x30303030, R12 \
	ANDL $0x0f0f0f0f, R10 \
	ANDL $0x0f0f0f0f, R13 \
	ORL R10, R11 \
	ORL R13, R12 \
	SHLQ $32, R11 \
	SHLQ $32, R12 \
	ORQ R11, R8 \
	ORQ R12, R9 \
	VMOVQ R8, X4 \
	VMOVQ R9, X5 \
	VPMOVZXBD X4, Y4 \
	VPMOVZXBD X5, Y5 \
	VCVTDQ2PS Y4, Y4 \
	VCVTDQ2PS Y5, Y5 \
	HALF(0, Y1, Z1) \
	HALF(2, Y6, Z6) \
	VMULPS Y1, Y4, Y4 \
	VMULPS Y6, Y5, Y5 \
	VMOVUPS Y4, 0(SP) \
	VMOVUPS Y5, 32(SP)

// STEP scales run j (32 values in Y0) and stores it.
#define STEP(j) \
	FLOATS \
	VMULPS.BCST (j*4)(SP), Z2, Z2 \
	VMULPS.BCST (j*4)(SP), Z3, Z3 \
	VSUBPS.BCST (32+j*4)(SP), Z2, Z2 \
	VSUBPS.BCST (32+j*4)(SP), Z3, Z3 \
	STORE(j*128)

// TABLE4K fills z with the 16 values of run j: step·number - base. Z14 holds 0 … 15.
#define TABLE4K(j, z) \
	VMULPS.BCST (j*4)(SP), Z14, z \
	VSUBPS.BCST (32+j*4)(SP), z, z

// PAIR4K decodes runs 2i (the low nibbles of 32 bytes) and 2i+1 (the high ones).
#define PAIR4K(i) \
	VPMOVZXBD (16+i*32)(SI), Z0 \
	VPMOVZXBD (32+i*32)(SI), Z7 \
	TABLE4K((2*i), Z8) \
	TABLE4K((2*i+1), Z9) \
	LOOKUP(Z8, Z0, Z2) \
	LOOKUP(Z8, Z7, Z3) \
	STORE((i*256)) \
	VPSRLD $4, Z0, Z0 \
	VPSRLD $4, Z7, Z7 \
	LOOKUP(Z9, Z0, Z2) \
	LOOKUP(Z9, Z7, Z3) \
	STORE((i*256+128))

// FIFTH adds 16 to the bytes of Y0 whose bit of Y13 is set in Y8, and moves Y13 on to the next bit.
#define FIFTH \
	VPTESTMB Y13, Y8, K1 \
	VPADDB Y14, Y0, K1, Y0 \
	VPADDB Y13, Y13, Y13

#define PAIR5K(i) \
	VMOVDQU (48+i*32)(SI), Y7 \
	VPAND Y15, Y7, Y0 \
	FIFTH \
	STEP((2*i)) \
	VPSRLW $4, Y7, Y7 \
	VPAND Y15, Y7, Y0 \
	FIFTH \
	STEP((2*i+1))

// STEP6 centres the 32 values of Y0 with the bit pairs in Y9, scales run j and stores it.
#define STEP6(j) \
	VPAND Y13, Y9, Y9 \
	VPOR Y9, Y0, Y0 \
	VPSUBB Y14, Y0, Y0 \
	FLOATS \
	VMULPS.BCST (j*8)(SP), Z2, Z2 \
	VMULPS.BCST (j*8+4)(SP), Z3, Z3 \
	STORE(j*128)

#define PART6(p) \
	VMOVDQU (p*64)(SI), Y6 \
	VMOVDQU (p*64+32)(SI), Y7 \
	VMOVDQU (128+p*32)(SI), Y8 \
	VPAND Y15, Y6, Y0 \
	VPSLLW $4, Y8, Y9 \
	STEP6((4*p)) \
	VPAND Y15, Y7, Y0 \
	VPSLLW $2, Y8, Y9 \
	STEP6((4*p+1)) \
	VPSRLW $4, Y6, Y6 \
	VPAND Y15, Y6, Y0 \
	VMOVDQA Y8, Y9 \
	STEP6((4*p+2)) \
	VPSRLW $4, Y7, Y7 \
	VPAND Y15, Y7, Y0 \
	VPSRLW $2, Y8, Y9 \
	STEP6((4*p+3))

// numbers are the floats -16 … 15.
DATA numbers<>+0(SB)/4, $0xc1800000
DATA numbers<>+4(SB)/4, $0xc1700000
DATA numbers<>+8(SB)/4, $0xc1600000
DATA numbers<>+12(SB)/4, $0xc1500000
DATA numbers<>+16(SB)/4, $0xc1400000
DATA numbers<>+20(SB)/4, $0xc1300000
DATA numbers<>+24(SB)/4, $0xc1200000
DATA numbers<>+28(SB)/4, $0xc1100000
DATA numbers<>+32(SB)/4, $0xc1000000
DATA numbers<>+36(SB)/4, $0xc0e00000
DATA numbers<>+40(SB)/4, $0xc0c00000
DATA numbers<>+44(SB)/4, $0xc0a00000
DATA numbers<>+48(SB)/4, $0xc0800000
DATA numbers<>+52(SB)/4, $0xc0400000
DATA numbers<>+56(SB)/4, $0xc0000000
DATA numbers<>+60(SB)/4, $0xbf800000
DATA numbers<>+64(SB)/4, $0x00000000
DATA numbers<>+68(SB)/4, $0x3f800000
DATA numbers<>+72(SB)/4, $0x40000000
DATA numbers<>+76(SB)/4, $0x40400000
DATA numbers<>+80(SB)/4, $0x40800000
DATA numbers<>+84(SB)/4, $0x40a00000
DATA numbers<>+88(SB)/4, $0x40c00000
DATA numbers<>+92(SB)/4, $0x40e00000
DATA numbers<>+96(SB)/4, $0x41000000
DATA numbers<>+100(SB)/4, $0x41100000
DATA numbers<>+104(SB)/4, $0x41200000
DATA numbers<>+108(SB)/4, $0x41300000
DATA numbers<>+112(SB)/4, $0x41400000
DATA numbers<>+116(SB)/4, $0x41500000
DATA numbers<>+120(SB)/4, $0x41600000
DATA numbers<>+124(SB)/4, $0x41700000
GLOBL numbers<>(SB), RODATA|NOPTR, $128

// func unpackQ4_0avx512(dst *float32, src *byte, blocks int)
TEXT ·unpackQ4_0avx512(SB), NOSPLIT, $0-24
	ARGS
	VMOVUPS numbers<>+32(SB), Z14 // -8 … 7
loop:
	PREFETCHT0 AHEAD(SI)
	SCALE
	VPMOVZXBD 2(SI), Z0
	VPSRLD $4, Z0, Z5
	VMULPS Z1, Z14, Z4
	LOOKUP(Z4, Z0, Z2)
	LOOKUP(Z4, Z5, Z3)
	STORE(0)
	NEXT(18, 32)
	JNZ loop
	END

// func unpackQ4_1avx512(dst *float32, src *byte, blocks int)
TEXT ·unpackQ4_1avx512(SB), NOSPLIT, $0-24
	ARGS
	VMOVUPS numbers<>+64(SB), Z14 // 0 … 15
	MOVL $1, AX
	VPBROADCASTD AX, Z13
loop:
	PREFETCHT0 AHEAD(SI)
	SCALE
	VPERMPS Z7, Z13, Z6 // the minimum is the half after the scale
	VPMOVZXBD 4(SI), Z0
	VPSRLD $4, Z0, Z5
	VMULPS Z1, Z14, Z4
	VADDPS Z6, Z4, Z4
	LOOKUP(Z4, Z0, Z2)
	LOOKUP(Z4, Z5, Z3)
	STORE(0)
	NEXT(20, 32)
	JNZ loop
	END

// func unpackQ5_0avx512(dst *float32, src *byte, blocks int)
TEXT ·unpackQ5_0avx512(SB), NOSPLIT, $0-24
	ARGS
	VMOVUPS numbers<>+0(SB), Z13 // -16 … -1
	VMOVUPS numbers<>+64(SB), Z14 // 0 … 15
	MOVL $15, AX
	VPBROADCASTD AX, Z15
	MOVL $16, AX
	VPBROADCASTD AX, Z12
loop:
	PREFETCHT0 AHEAD(SI)
	SCALE
	KMOVW 2(SI), K1
	KMOVW 4(SI), K2
	VPMOVZXBD 6(SI), Z3
	VPANDD Z15, Z3, Z2
	VPSRLD $4, Z3, Z3
	VPORD Z12, Z2, K1, Z2 // the fifth bit picks the upper table
	VPORD Z12, Z3, K2, Z3
	VMULPS Z1, Z13, Z4
	VMULPS Z1, Z14, Z5
	VPERMI2PS Z5, Z4, Z2
	VPERMI2PS Z5, Z4, Z3
	STORE(0)
	NEXT(22, 32)
	JNZ loop
	END

// func unpackQ8_0avx512(dst *float32, src *byte, blocks int)
TEXT ·unpackQ8_0avx512(SB), NOSPLIT, $0-24
	ARGS
loop:
	PREFETCHT0 AHEAD(SI)
	SCALE
	VPMOVSXBD 2(SI), Z2
	VPMOVSXBD 18(SI), Z3
	VCVTDQ2PS Z2, Z2
	VCVTDQ2PS Z3, Z3
	VMULPS Z1, Z2, Z2
	VMULPS Z1, Z3, Z3
	STORE(0)
	NEXT(34, 32)
	JNZ loop
	END

// func unpackQ4Kavx512(dst *float32, src *byte, blocks int)
TEXT ·unpackQ4Kavx512(SB), NOSPLIT, $64-24
	ARGS
	VMOVUPS numbers<>+64(SB), Z14
loop:
	PREFETCHT0 AHEAD(SI)
	PREFETCHT0 (AHEAD+64)(SI)
	PREFETCHT0 (AHEAD+128)(SI)
	SCALES
	PAIR4K(0)
	PAIR4K(1)
	PAIR4K(2)
	PAIR4K(3)
	NEXT(144, 256)
	JNZ loop
	END

// func unpackQ5Kavx512(dst *float32, src *byte, blocks int)
TEXT ·unpackQ5Kavx512(SB), NOSPLIT, $64-24
	ARGS
	BYTES(0x0f0f0f0f, Y15)
	BYTES(0x10101010, Y14)
	BYTES(0x01010101, Y12)
loop:
	PREFETCHT0 AHEAD(SI)
	PREFETCHT0 (AHEAD+64)(SI)
	PREFETCHT0 (AHEAD+128)(SI)
	SCALES
	VMOVDQU 16(SI), Y8
	VMOVDQA Y12, Y13
	PAIR5K(0)
	PAIR5K(1)
	PAIR5K(2)
	PAIR5K(3)
	NEXT(176, 256)
	JNZ loop
	END

// func unpackQ6Kavx512(dst *float32, src *byte, blocks int)
TEXT ·unpackQ6Kavx512(SB), NOSPLIT, $64-24
	ARGS
	BYTES(0x0f0f0f0f, Y15)
	BYTES(0x20202020, Y14)
	BYTES(0x30303030, Y13)
loop:
	PREFETCHT0 AHEAD(SI)
	PREFETCHT0 (AHEAD+64)(SI)
	PREFETCHT0 (AHEAD+128)(SI)
	PREFETCHT0 (AHEAD+192)(SI)
	HALF(208, Y1, Z1)
	VPMOVSXBD 192(SI), Z4
	VCVTDQ2PS Z4, Z4
	VMULPS Z1, Z4, Z4
	VMOVUPS Z4, 0(SP)
	PART6(0)
	PART6(1)
	NEXT(210, 256)
	JNZ loop
	END

// func unpackF16avx512(dst *float32, src *byte, blocks int)
TEXT ·unpackF16avx512(SB), NOSPLIT, $0-24
	ARGS
	SUBQ $16, CX
	JLT tail
loop:
	PREFETCHT0 AHEAD(SI)
	VCVTPH2PS (SI), Z0
	VMOVUPS Z0, (DI)
	ADDQ $32, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JGE loop
tail:
	ADDQ $16, CX
	JZ done
one:
	MOVWLZX (SI), AX
	VMOVD AX, X0
	VCVTPH2PS X0, X0
	VMOVSS X0, (DI)
	NEXT(2, 1)
	JNZ one
done:
	END

// func unpackBF16avx512(dst *float32, src *byte, blocks int)
TEXT ·unpackBF16avx512(SB), NOSPLIT, $0-24
	ARGS
	SUBQ $16, CX
	JLT tail
loop:
	PREFETCHT0 AHEAD(SI)
	VPMOVZXWD (SI), Z0
	VPSLLD $16, Z0, Z0
	VMOVUPS Z0, (DI)
	ADDQ $32, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JGE loop
tail:
	ADDQ $16, CX
	JZ done
one:
	MOVWLZX (SI), AX
	SHLL $16, AX
	MOVL AX, (DI)
	NEXT(2, 1)
	JNZ one
done:
	END
