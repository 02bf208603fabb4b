// Made by src/embed.py from src/api/products.h. Change that file, then run 'make gen'.
// The public values of an epilogue's flags and activations, for kernels and their preprocessor.
#ifndef GEMMEPI_KERNELS_CODES_H
#define GEMMEPI_KERNELS_CODES_H

#define FLAG_BIAS 0x400
#define FLAG_AUX 0x800
#define FLAG_BACKWARD 0x1000
#define FLAG_RESIDUAL 0x2000
#define FLAG_BGRAD 0x4000
#define FLAG_BGRAD_A 0x8000
#define FLAG_BGRAD_B 0x10000
#define FLAG_GATED 0x40000
#define FLAG_GATE_FIRST 0x80000
#define FLAG_UPSTREAM 0x100000
#define FLAG_ACCUMULATE_BIAS_GRAD 0x20000
#define CODE_NONE 0x00
#define CODE_RELU 0x0f
#define CODE_GELU_TANH 0x17
#define CODE_GELU_ERF 0x1b
#define CODE_SILU 0x1d
#define CODE_SIGMOID 0x1e
#define CODE_TANH 0x27
#define CODE_LEAKY_RELU 0x2b
#define CODE_ELU 0x2d
#define CODE_SQUARED_RELU 0x2e
#define CODE_QUICK_GELU 0x33
#define CODE_SOFTPLUS 0x35
#define CODE_HARDSWISH 0x36
#define CODE_MISH 0x39
#define CODE_HARDSIGMOID 0x3a

#define ACTIVATION_CODES(X) X(NONE) X(RELU) X(GELU_TANH) X(GELU_ERF) X(SILU) X(SIGMOID) X(TANH) X(LEAKY_RELU) X(ELU) X(SQUARED_RELU) X(QUICK_GELU) X(SOFTPLUS) X(HARDSWISH) X(MISH) X(HARDSIGMOID)

#endif
