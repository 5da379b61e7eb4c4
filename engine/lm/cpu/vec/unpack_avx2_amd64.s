#include "textflag.h"

// Block decoders of the quantised types, AVX2. Layouts: engine/lm/dequant.go, which is also their oracle. A product
// and the sum after it are two roundings, as there; nothing is fused. DI is dst, SI the block, CX the blocks left.

#define ARGS \
	MOVQ dst+0(FP), DI \
	MOVQ src+8(FP), SI \
	MOVQ blocks+16(FP), CX

// BYTES fills register r with the byte pattern v.
#define BYTES(v, r) \
	MOVL $v, AX \
	VMOVD AX, X0 \
	VPBROADCASTD X0, r

// HALF spreads the f16 at off into the lanes of y; x is its lower part.
#define HALF(off, x, y) \
	VPBROADCASTW off(SI), x \
	VCVTPH2PS x, y

// NIBBLES makes Y0 the 32 nibbles of the 16 bytes at off, all the low ones first. Y15 holds 0x0f.
#define NIBBLES(off) \
	VMOVDQU off(SI), X0 \
	VPSRLW $4, X0, X2 \
	VINSERTI128 $1, X2, Y0, Y0 \
	VPAND Y15, Y0, Y0

// FLOATS turns the 32 signed bytes of Y0 into floats in Y2, Y3, Y4 and Y5.
#define FLOATS \
	VEXTRACTI128 $1, Y0, X4 \
	VPSRLDQ $8, X0, X3 \
	VPSRLDQ $8, X4, X5 \
	VPMOVSXBD X0, Y2 \
	VPMOVSXBD X3, Y3 \
	VPMOVSXBD X4, Y4 \
	VPMOVSXBD X5, Y5 \
	VCVTDQ2PS Y2, Y2 \
	VCVTDQ2PS Y3, Y3 \
	VCVTDQ2PS Y4, Y4 \
	VCVTDQ2PS Y5, Y5

// EACH applies an operation with register y to the 32 floats.
#define EACH(op, y) \
	op y, Y2, Y2 \
	op y, Y3, Y3 \
	op y, Y4, Y4 \
	op y, Y5, Y5

#define STORE(off) \
	VMOVUPS Y2, off(DI) \
	VMOVUPS Y3, (off+32)(DI) \
	VMOVUPS Y4, (off+64)(DI) \
	VMOVUPS Y5, (off+96)(DI)

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

DATA spread<>+0(SB)/8, $0x0000000000000000
DATA spread<>+8(SB)/8, $0x0101010101010101
DATA spread<>+16(SB)/8, $0x0202020202020202
DATA spread<>+24(SB)/8, $0x0303030303030303
GLOBL spread<>(SB), RODATA|NOPTR, $32

DATA bits<>+0(SB)/8, $0x8040201008040201
GLOBL bits<>(SB), RODATA|NOPTR, $8

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
	HALF(0, X1, Y1) \
	HALF(2, X6, Y6) \
	VMULPS Y1, Y4, Y4 \
	VMULPS Y6, Y5, Y5 \
	VMOVUPS Y4, 0(SP) \
	VMOVUPS Y5, 32(SP)

// STEP scales run j (32 values in Y0) and stores it.
#define STEP(j) \
	FLOATS \
	VBROADCASTSS (j*4)(SP), Y1 \
	VBROADCASTSS (32+j*4)(SP), Y6 \
	EACH(VMULPS, Y1) \
	EACH(VSUBPS, Y6) \
	STORE(j*128)

#define PAIR4K(i) \
	VMOVDQU (16+i*32)(SI), Y7 \
	VPAND Y15, Y7, Y0 \
	STEP((2*i)) \
	VPSRLW $4, Y7, Y7 \
	VPAND Y15, Y7, Y0 \
	STEP((2*i+1))

// FIFTH adds 16 to the bytes of Y0 whose bit of Y13 is set in Y8, and moves Y13 on to the next bit.
#define FIFTH \
	VPAND Y13, Y8, Y9 \
	VPCMPEQB Y13, Y9, Y9 \
	VPAND Y14, Y9, Y9 \
	VPADDB Y9, Y0, Y0 \
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
	VBROADCASTSS (j*8)(SP), Y1 \
	VBROADCASTSS (j*8+4)(SP), Y10 \
	VMULPS Y1, Y2, Y2 \
	VMULPS Y1, Y3, Y3 \
	VMULPS Y10, Y4, Y4 \
	VMULPS Y10, Y5, Y5 \
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

// func unpackQ4_0avx2(dst *float32, src *byte, blocks int)
TEXT ·unpackQ4_0avx2(SB), NOSPLIT, $0-24
	ARGS
	BYTES(0x0f0f0f0f, Y15)
	BYTES(0x08080808, Y14)
loop:
	PREFETCHT0 AHEAD(SI)
	HALF(0, X1, Y1)
	NIBBLES(2)
	VPSUBB Y14, Y0, Y0
	FLOATS
	EACH(VMULPS, Y1)
	STORE(0)
	NEXT(18, 32)
	JNZ loop
	END

// func unpackQ4_1avx2(dst *float32, src *byte, blocks int)
TEXT ·unpackQ4_1avx2(SB), NOSPLIT, $0-24
	ARGS
	BYTES(0x0f0f0f0f, Y15)
loop:
	PREFETCHT0 AHEAD(SI)
	HALF(0, X1, Y1)
	HALF(2, X6, Y6)
	NIBBLES(4)
	FLOATS
	EACH(VMULPS, Y1)
	EACH(VADDPS, Y6)
	STORE(0)
	NEXT(20, 32)
	JNZ loop
	END

// func unpackQ5_0avx2(dst *float32, src *byte, blocks int)
TEXT ·unpackQ5_0avx2(SB), NOSPLIT, $0-24
	ARGS
	BYTES(0x0f0f0f0f, Y15)
	BYTES(0x10101010, Y14)
	VMOVDQU spread<>(SB), Y13
	VPBROADCASTQ bits<>(SB), Y12
loop:
	PREFETCHT0 AHEAD(SI)
	HALF(0, X1, Y1)
	VPBROADCASTD 2(SI), Y7
	VPSHUFB Y13, Y7, Y7 // eight copies of each byte
	VPAND Y12, Y7, Y7
	VPCMPEQB Y12, Y7, Y7 // its bits, one a byte
	VPANDN Y14, Y7, Y7
	NIBBLES(6)
	VPSUBB Y7, Y0, Y0 // minus 16 where the fifth bit is clear
	FLOATS
	EACH(VMULPS, Y1)
	STORE(0)
	NEXT(22, 32)
	JNZ loop
	END

// func unpackQ8_0avx2(dst *float32, src *byte, blocks int)
TEXT ·unpackQ8_0avx2(SB), NOSPLIT, $0-24
	ARGS
loop:
	PREFETCHT0 AHEAD(SI)
	HALF(0, X1, Y1)
	VMOVDQU 2(SI), Y0
	FLOATS
	EACH(VMULPS, Y1)
	STORE(0)
	NEXT(34, 32)
	JNZ loop
	END

// func unpackQ4Kavx2(dst *float32, src *byte, blocks int)
TEXT ·unpackQ4Kavx2(SB), NOSPLIT, $64-24
	ARGS
	BYTES(0x0f0f0f0f, Y15)
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

// func unpackQ5Kavx2(dst *float32, src *byte, blocks int)
TEXT ·unpackQ5Kavx2(SB), NOSPLIT, $64-24
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

// func unpackQ6Kavx2(dst *float32, src *byte, blocks int)
TEXT ·unpackQ6Kavx2(SB), NOSPLIT, $64-24
	ARGS
	BYTES(0x0f0f0f0f, Y15)
	BYTES(0x20202020, Y14)
	BYTES(0x30303030, Y13)
loop:
	PREFETCHT0 AHEAD(SI)
	PREFETCHT0 (AHEAD+64)(SI)
	PREFETCHT0 (AHEAD+128)(SI)
	PREFETCHT0 (AHEAD+192)(SI)
	HALF(208, X1, Y1)
	VPMOVSXBD 192(SI), Y4
	VPMOVSXBD 200(SI), Y5
	VCVTDQ2PS Y4, Y4
	VCVTDQ2PS Y5, Y5
	VMULPS Y1, Y4, Y4
	VMULPS Y1, Y5, Y5
	VMOVUPS Y4, 0(SP)
	VMOVUPS Y5, 32(SP)
	PART6(0)
	PART6(1)
	NEXT(210, 256)
	JNZ loop
	END

// func unpackF16avx2(dst *float32, src *byte, blocks int)
TEXT ·unpackF16avx2(SB), NOSPLIT, $0-24
	ARGS
	SUBQ $8, CX
	JLT tail
loop:
	PREFETCHT0 AHEAD(SI)
	VCVTPH2PS (SI), Y0
	VMOVUPS Y0, (DI)
	ADDQ $16, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JGE loop
tail:
	ADDQ $8, CX
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

// func unpackBF16avx2(dst *float32, src *byte, blocks int)
TEXT ·unpackBF16avx2(SB), NOSPLIT, $0-24
	ARGS
	SUBQ $8, CX
	JLT tail
loop:
	PREFETCHT0 AHEAD(SI)
	VPMOVZXWD (SI), Y0
	VPSLLD $16, Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $16, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JGE loop
tail:
	ADDQ $8, CX
	JZ done
one:
	MOVWLZX (SI), AX
	SHLL $16, AX
	MOVL AX, (DI)
	NEXT(2, 1)
	JNZ one
done:
	END
