/* Made by src/embed.py from src/kernels/. Change those files, then run 'make gen'. */
#ifndef GEMMEPI_KERNELS_SRC_H
#define GEMMEPI_KERNELS_SRC_H

#include <stddef.h>

static const char *const gemmepi__source_activation_cuh[] = {
"#line 1 \"src/kernels/activation.cuh\"\n#line 16\n#pragma once\n\n#include \"codes.h\"\n\n#ifndef GEMMEPI_LONG_SUMS\n#define GEMMEPI_LONG_SUMS 0\n#endif\n#ifndef GEMMEPI_EXACT\n#define GEMMEPI_EXACT 1\n#endif\n\n#define NAMED(name) name = CODE_##name,\nenum{ACTIVATION_CODES(NAMED)};\n"
"#undef NAMED\n\n\n\n\ntemplate<int Activation>constexpr bool SAVES_MASK=Activation==RELU;\n\ntemplate<int Activation>constexpr bool SELECTS=Activation==RELU||Activation==HARDSIGMOID;\n\ntemplate<int Activation>\n"
"constexpr bool HAS_ANY_SIZE=Activation==SQUARED_RELU||Activation==LEAKY_RELU||Activation==ELU;\n\n\n\ntemplate<int Activation>\nconstexpr bool ENDS_TAILS=Activation==SILU||Activation==GELU_TANH||Activation==QUICK_GELU;\n\ntemplate<int Activation>\n"
"constexpr bool HAS_FORM_OF_SUMS= !GEMMEPI_EXACT&&(ENDS_TAILS<Activation> ||Activation==GELU_ERF);\n\ntemplate<int Activation>constexpr bool GATES_BY_SUMS=HAS_FORM_OF_SUMS<Activation> &&Activation!=SILU;\n\n\n"
"template<int Activation>constexpr float SUM_SCALE= !GEMMEPI_EXACT&&Activation==GELU_TANH?0.46866869f:0;\n\n\ntemplate<int Activation>\nconstexpr bool HAS_NEAR_DERIVATIVE= !GEMMEPI_EXACT&&(ENDS_TAILS<Activation> ||Activation==GELU_ERF);\ntemplate<int Activation>\n"
"constexpr float NEAR=Activation==SILU         ? -80\n:Activation==QUICK_GELU? -47\n:Activation==GELU_ERF   ? -12.5f\n: -9.75f;\nconstexpr float NEAR_END=1048576;\ntemplate<int Activation>constexpr bool HAS_NEAR_END=Activation!=SILU;\n\n\n\n\n__device__ inline float from_0_to_1(float x){\n"
"return __saturatef(x);\n}\n__device__ inline double from_0_to_1(double x){\nreturn x<0?0:x>1?1:x;\n}\n\n\n#ifndef GEMMEPI_HAS_FUNCTIONS\n__device__ inline float fast_power_of_2(float x){\nfloat y;\nasm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(y): \"f\"(x));\nreturn y;\n}\n"
"__device__ inline float fast_reciprocal(float x){\nfloat y;\nasm(\"rcp.approx.ftz.f32 %0, %1;\" : \"=f\"(y): \"f\"(x));\nreturn y;\n}\n#endif\n\n\n__device__ inline float fused(float x,float y,float z){\nreturn fmaf(x,y,z);\n}\n__device__ inline double fused(double x,double y,double z){\n"
"return fma(x,y,z);\n}\n\n\n__device__ inline float ratio(float x,float y){\nfloat inverse=fast_reciprocal(y),guess=x*inverse;\nreturn GEMMEPI_EXACT?fmaf(inverse,fmaf(-y,guess,x),guess):guess;\n}\n\n\n__device__ inline float reciprocal_of_1_plus(float x,float y){\n"
"float sum=fmaf(x,y,1),inverse=fast_reciprocal(sum);\nif(!GEMMEPI_EXACT)\nreturn inverse;\nfloat rest=fmaf(x,y,1 - sum);\nreturn fmaf(inverse,fmaf(-rest,inverse,fmaf(-sum,inverse,1)),inverse);\n}\n__device__ inline double reciprocal_of_1_plus(double x,double y){\n"
"double sum=fma(x,y,1.0),inverse=1/sum,rest=fma(x,y,1 - sum);\nreturn fma(inverse,fma(-rest,inverse,fma(-sum,inverse,1.0)),inverse);\n}\n\n\n\ntemplate<class A>struct Exponential{\nA part,root;\n__device__ A value()const{\nreturn part*root*root;\n}\n};\n\n\nstruct Reduced_exponential{\n"
"float less_1,root;\n};\n\nconstexpr float ROUNDER=12582912 + 127 + 24;\nconstexpr float LOG_4_HIGH=1.38629150390625f,LOG_4_LOW=2.85721364e-06f;\n__device__ inline float shifted_quotient(float x){\nreturn fmaf(x,0.72134752044448170368f,ROUNDER);\n}\n"
"__device__ inline Reduced_exponential exponential_of_remainder(float shifted,float r){\n\nfloat q=fmaf(r,2.48440974e-05f,0.000200913782f);\nq=fmaf(r,q,0.00138897297f);\nq=fmaf(r,q,0.00833266042f);\nq=fmaf(r,q,0.0416666456f);\nq=fmaf(r,q,0.166666716f);\nq=fmaf(r,q,0.5f);\n"
"return{fmaf(r*r,q,r),__uint_as_float(__float_as_uint(shifted)<<23)*5.9604644775390625e-08f};\n}\n__device__ inline Reduced_exponential reduced_exponential(float x){\nx=x< -209.5f? -209.5f:x;\nfloat shifted=shifted_quotient(x),k=shifted - ROUNDER;\n"
"return exponential_of_remainder(shifted,fmaf(k,-LOG_4_LOW,fmaf(k,-LOG_4_HIGH,x)));\n}\n\n__device__ inline Exponential<float>exponential(float x){\n#if GEMMEPI_EXACT\nReduced_exponential e=reduced_exponential(x);\nreturn{1 + e.less_1,e.root};\n#else\n"
"return{1,fast_power_of_2(x*0.72134752044448170368f)};\n#endif\n}\n",
"__device__ inline Exponential<double>exponential(double x){\nbool far= !(x> -600);\ndouble e=exp(far?0.5*x:x);\nreturn{far?1:e,far?e:1};\n}\n\n\ntemplate<bool More>\n__device__ inline Reduced_exponential reduced_exponential_of_product(float x,float y,float more){\n"
"float shifted=shifted_quotient(-x*y),k=shifted - ROUNDER,r=fmaf(-x,y,k* -LOG_4_HIGH);\nif(More)\nr=fmaf(-x,more,r);\nreturn exponential_of_remainder(shifted,fmaf(k,-LOG_4_LOW,r));\n}\ntemplate<bool More>\n__device__ inline Exponential<float>exponential_of_product(float x,float y,float more){\n"
"Reduced_exponential e=reduced_exponential_of_product<More>(x,y,more);\nreturn{1 + e.less_1,e.root};\n}\ntemplate<bool More>\n__device__ inline Exponential<double>exponential_of_product(double x,double y,double more){\ndouble product=x*y;\nExponential<double>e=exponential(-product);\n"
"double rounded=fma(x,y,-product);\nif(More)\nrounded=fma(x,more,rounded);\nreturn{e.part==1?1:fma(e.part,-rounded,e.part),e.root};\n}\n\n\n__device__ inline float exponential_less_1(float x){\n#if GEMMEPI_EXACT\nReduced_exponential e=reduced_exponential(x);\nfloat square=e.root*e.root;\n"
"return fmaf(e.less_1,square,square - 1);\n#else\n\nreturn x> -0.015625f?x*fmaf(x,0.5f,1):exponential(x).value()- 1;\n#endif\n}\n__device__ inline double exponential_less_1(double x){\nreturn expm1(x);\n}\n\n__device__ inline float hyperbolic_tangent(float x){\n"
"float m=exponential_less_1(-2*fabsf(x));\nreturn copysignf(ratio(m,2 + m),x);\n}\n__device__ inline double hyperbolic_tangent(double x){\nreturn tanh(x);\n}\n\n\n__device__ inline float logarithm_of_1_plus(Exponential<float>exponential){\nfloat e=exponential.value(),q;\n#if GEMMEPI_EXACT\n\n"
"q=fmaf(e,-0.00329107419f,0.0200884603f);\nq=fmaf(e,q,-0.0574604832f);\nq=fmaf(e,q,0.106613711f);\nq=fmaf(e,q,-0.153449774f);\nq=fmaf(e,q,0.196921214f);\nq=fmaf(e,q,-0.249580204f);\nq=fmaf(e,q,0.333304644f);\nq=fmaf(e,q,-0.499999315f);\nreturn fmaf(exponential.part*e,q,exponential.part);\n"
"#else\n\nq=fmaf(e,0.0413442105f,-0.157421246f);\nq=fmaf(e,q,0.306297272f);\nq=fmaf(e,q,-0.496977061f);\nreturn fmaf(e,q,0.999943256f);\n#endif\n}\n__device__ inline double logarithm_of_1_plus(Exponential<double>e){\nreturn e.root==1?log1p(e.part):e.part;\n}\n\n\n\n\n"
"template<class A>struct Logistic{A part,root,opposite;};\ntemplate<class A>__device__ inline Logistic<A>logistic(bool below,Exponential<A>e){\nA inverse=reciprocal_of_1_plus(e.part*e.root,e.root);\nreturn{below?e.part*inverse:inverse,below?e.root:A(1),below?inverse:e.value()*inverse};\n}\n\n\n"
"template<class A>__device__ inline A times_logistic(A v,A factor,Logistic<A>s){\nreturn v*s.root*(factor*s.part)*s.root;\n}\n#if !GEMMEPI_EXACT\ntemplate<>struct Logistic<float>{float root,share;};\n__device__ inline Logistic<float>logistic(bool below,Exponential<float>e){\n"
"float root=below?e.root:1;\nreturn{root,root*reciprocal_of_1_plus(e.root,e.root)};\n}\n__device__ inline float times_logistic(float v,float factor,Logistic<float>s){\nreturn v*s.root*(factor*s.share);\n}\n#endif\ntemplate<class A>__device__ inline Logistic<A>logistic(A x){\n"
"return logistic(x<0,exponential(-fabs(x)));\n}\ntemplate<class A>__device__ inline A times_logistic(A v,A factor,A x){\nreturn times_logistic(v,factor,logistic(x));\n}\ntemplate<class A>__device__ inline A times_logistic(A v,A x){\nreturn times_logistic(v,A(1),x);\n}\n\n\n"
"__device__ inline float times_logistic_of(float x,float power){\nconstexpr float scale=0.00390625f;\nreturn x*scale*fast_reciprocal(fast_power_of_2(power)+ scale);\n}\n\n\n\ntemplate<bool More,class A>\n__device__ inline A times_gate_derivative(A v,A x,Logistic<A>s,A slope,A more){\n"
"A scale=s.opposite*s.root,change=x*scale;\nif(More)\nchange=fused(change,slope,fused(change,more,fused(x,scale,-change)*slope));\nelse\nchange*=slope;\nreturn v*s.root*fused(change,s.part,s.root*s.part);\n}\n#if !GEMMEPI_EXACT\ntemplate<bool More>\n"
"__device__ inline float times_gate_derivative(float v,float x,Logistic<float>s,float slope,float more){\n",
"float opposite=fmaf(-s.root,s.share,1);\nreturn v*s.root*(x*s.share*opposite*(More?slope + more:slope)+ s.share);\n}\n#endif\n\n\ntemplate<class A>__device__ inline A times_logistic_derivative(A v,A factor,A x){\nExponential<A>e=exponential(x);\n"
"A inverse=reciprocal_of_1_plus(e.part*e.root,e.root);\nreturn v*e.root*(e.part*inverse*inverse*(factor*e.root));\n}\n\n\n\ntemplate<class A>struct Gate{\nLogistic<A>s;\nA slope,more;\n};\nconstexpr double GELU_SLOPE=2*0.79788456080286535588;\n"
"template<class A>__device__ inline Gate<A>gelu_gate(A x){\nconstexpr double c=GELU_SLOPE;\nconstexpr A end=sizeof(A)==8?A(40):A(13.8);\nA size=fabs(x)>end?end:fabs(x),square=size*size;\nA factor=fused(A(c*0.044715),square,A(c)),more=A(c*0.134145)*square;\n"
"A rest=fused(A(c*0.044715),square,A(c)- factor);\nreturn{logistic(x<0,exponential_of_product<true>(size,factor,rest)),A(c),more};\n}\ntemplate<class A>__device__ inline Gate<A>quick_gelu_gate(A x){\nconstexpr A end=sizeof(A)==8?A(1000):A(123.2);\nA size=fabs(x)>end?end:fabs(x);\n"
"return{logistic(x<0,exponential_of_product<false>(size,A(1.702),A(0))),A(1.702),A(0)};\n}\n#if !GEMMEPI_EXACT\nconstexpr double ROOT_POWER= -0.72134752044448170368;\n__device__ inline Gate<float>gelu_gate(float x){\nconstexpr double c=GELU_SLOPE;\nfloat square=x*x,root=fast_power_of_2(\n"
"fabsf(x)*fmaf(float(ROOT_POWER*c*0.044715),square,float(ROOT_POWER*c)));\nreturn{logistic(x<0,{1,root}),float(c),float(c*0.134145)*(square<4096?square:4096)};\n}\n__device__ inline Gate<float>quick_gelu_gate(float x){\n"
"return{logistic(x<0,{1,fast_power_of_2(fabsf(x)*float(ROOT_POWER*1.702))}),1.702f,0};\n}\n#endif\n\n\n\n\n__device__ inline float short_normal_tail(float y){\nfloat above=fmaf(y,fmaf(y,fmaf(y,0.0157306679f,0.11407923f),0.352673531f),0.499999911f);\n"
"float under=fmaf(y,fmaf(y,fmaf(y,0.0394377708f,0.28568697f),0.927633762f),1.50322306f);\nreturn above*fast_reciprocal(fmaf(y,under,1));\n}\n\n\n__device__ inline float short_normal_slope(float y){\n"
"float above=fmaf(y,fmaf(y,fmaf(y,fmaf(y,-0.0383506231f,-0.217693895f),-0.443243533f),-0.192517936f),0.500000179f);\nfloat under=fmaf(y,fmaf(y,0.0961380526f,0.545425475f),1.2107532f);\nreturn above*fast_reciprocal(fmaf(y,under,1));\n}\n\n\n\n\n"
"template<bool Derivative>__device__ inline float times_normal(float v,float x){\n#if GEMMEPI_EXACT\nfloat size=fabsf(x),y=fminf(size,20.47f);\nReduced_exponential e=reduced_exponential_of_product<false>(y,0.5f*y,0);\n\n\nfloat above=\n"
"fmaf(y,fmaf(y,fmaf(y,fmaf(y,0.0031668392f,0.03207509f),0.14717144f),0.35697037f),0.4140625f);\nfloat under=fmaf(y,0.0079379715f,0.08040679f);\nfloat slope=fmaf(y,fmaf(y,fmaf(y,under,0.37669387f),0.97712195f),1.374689f);\nunder=fmaf(y,slope,0.828125f);\n\n"
"float inverse=fast_reciprocal(under),tail=above*inverse,lost=fmaf(y,slope,0.828125f - under);\ntail=fmaf(inverse,fmaf(-lost,tail,fmaf(-under,tail,above)),tail);\nif(Derivative)\ntail=fmaf(size,-0.39894228040143267794f,tail);\ntail=fmaf(tail,e.less_1,tail)*e.root;\n"
"return(x<0?v*tail:v)*(x<0?e.root:fmaf(-tail,e.root,1));\n#else\nfloat size=fabsf(x),y=fminf(size,20);\nExponential<float>e=exponential(-0.5f*x*x);\nfloat tail=short_normal_tail(y);\nif(Derivative)\ntail=fmaf(size,-0.39894228040143267794f,tail);\ntail*=e.root;\nfloat rest=e.part*e.root;\n"
"return(x<0?v*tail:v)*(x<0?rest:fmaf(-tail,rest,1));\n#endif\n}\n\n\n\n__device__ inline float times_own_normal(float x){\nfloat size=fabsf(fminf(x,20)),t=fast_reciprocal(fmaf(size,0.26f,1));\nfloat root=fast_power_of_2(x* -0.36067376f*x);\nfloat p=fmaf(t,-0.066500567f,0.20305874f);\n"
"p=fmaf(t,p,-0.065038852f);\np=fmaf(t,p,0.13312194f);\np=fmaf(t,p,0.087257259f);\np=fmaf(t,p,0.10438382f);\np=fmaf(t,p,0.10371772f);\np*=t*size;\nreturn fmaf(-p*root,root,fmaxf(x,0));\n}\n\n__device__ inline float above_0(float x){\n#if __CUDA_ARCH__ >= 800\n"
"asm(\"max.NaN.f32 %0, %1, 0f00000000;\" : \"=f\"(x): \"f\"(x));\nreturn x;\n#else\nreturn x<=0?0:x;\n#endif\n}\n\n\n\ntemplate<bool Gate>__device__ inline float sum_times_own_normal(float x){\n",
"float y=Gate? -fabsf(x):fminf(x,fmaxf(-x,-13));\n#if GEMMEPI_LONG_SUMS\nfloat p=fmaf(y,0.000388750457f,0.00660956977f);\np=fmaf(y,p,0.0510568805f);\np=fmaf(y,p,-0.460328877f);\np=fmaf(y,p,1.15084445f);\np=fmaf(y,p,-1.0000087f);\n#else\nfloat p=fmaf(y,9.13470785e-07f,4.16792682e-05f);\n"
"p=fmaf(y,p,0.000778685964f);\np=fmaf(y,p,0.00801064726f);\np=fmaf(y,p,0.0532111079f);\np=fmaf(y,p,-0.458959132f);\np=fmaf(y,p,1.15113628f);\np=fmaf(y,p,-0.999999404f);\n#endif\nif constexpr(Gate)\nreturn fmaf(x,0.5f,y* -0.5f)- from_0_to_1(-y*fast_power_of_2(p));\n"
"return fmaf(y,fast_power_of_2(p),above_0(x));\n}\nconstexpr double SQRT_HALF=0.70710678118654752440,\nSQRT_HALF_REST=4.8336466567264567e-17;\nconstexpr double INV_SQRT_2PI=0.39894228040143267794;\ntemplate<bool Derivative>__device__ inline double times_normal(double v,double x){\n"
"double y=x>40?40:x,square=y*y,argument=y* -SQRT_HALF;\nExponential<double>e=exponential(-0.5*x*x);\nif(x> -30){\ndouble of_square=fma(y,y,-square),\nof_argument=fma(y,-SQRT_HALF,-argument)+ y*SQRT_HALF_REST;\ndouble less=of_argument* -0.56418958354775628695,half;\n"
"half=square<1?fma(-0.5,erf(argument),0.5):0.5*erfc(argument);\nif(Derivative)\nless=fma(x,INV_SQRT_2PI,fma(y*INV_SQRT_2PI,-0.5*of_square,less));\nreturn v*fma(less,e.value(),half);\n}\ndouble factor=Derivative?x*INV_SQRT_2PI:0;\n\n"
"return v*e.root*(e.part*(0.5*erfcx(x* -SQRT_HALF)+ factor))*e.root;\n}\n\n\n\n\ntemplate<class A>__device__ inline A softplus(A x){\nExponential<A>e=exponential(-fabs(x));\nreturn e.root*logarithm_of_1_plus(e)*e.root +(x>0?x:A(0));\n}\n\n\n\ntemplate<class A>struct Mish{\nExponential<A>e;\n"
"A n,inverse;\n};\ntemplate<class A>constexpr A FAR=sizeof(A)==8?A(40):A(20);\ntemplate<class A>__device__ inline Mish<A>mish_parts(A x){\nExponential<A>e=exponential(x>FAR<A> ?FAR<A> :x);\nif(GEMMEPI_EXACT&&x>0)\ne={e.value(),1};\nA n=e.part + e.part*(A(0.5)*e.value());\n"
"return{e,n,reciprocal_of_1_plus(n*e.root,e.root)};\n}\ntemplate<class A>__device__ inline A mish(A x){\nMish<A>m=mish_parts(x);\nA y=x*m.e.root*(m.n*m.inverse)*m.e.root;\nreturn x>FAR<A> ?x:y;\n}\ntemplate<class A>__device__ inline A times_mish_derivative(A v,A x){\nMish<A>m=mish_parts(x);\n"
"A rise=m.e.part + m.e.part*m.e.value(),y;\nif(GEMMEPI_EXACT){\nA sum=fused(x*rise,m.inverse,x>0?A(-1):m.n);\ny=v*m.e.root*fused(sum*m.inverse,m.e.root,x>0?A(1):A(-0.0));\n}else{\nA sum=m.n + x*(rise*m.inverse);\ny=v*(sum*m.inverse*m.e.root)*m.e.root;\n}\nreturn x>FAR<A> ?v +(x - x):y;\n"
"}\n\n\n\n\ntemplate<class A>constexpr A LARGEST=A(3.4028234663852886e38);\ntemplate<class A>constexpr A LEAST=A(1.1754943508222875e-38);\ntemplate<>constexpr double LARGEST<double> =1.7976931348623157e308;\ntemplate<>constexpr double LEAST<double> =2.2250738585072014e-308;\n\n\n"
"template<class A>__device__ inline A product_in_range(A x,A y,A z){\nbool x_is_larger=fabs(x)>fabs(y);\nA both=x*y,larger=x_is_larger?x:y,smaller=x_is_larger?y:x,outer=larger*z;\nA out=fabs(both)>LARGEST<A> ||fabs(outer)<=LARGEST<A> ?outer*smaller:smaller*z*larger;\n"
"return fabs(both)>=LEAST<A> &&fabs(both)<=LARGEST<A> ?both*z:out;\n}\n\n\n\n\ntemplate<int Activation,class A>__device__ inline A activate(A x,A parameter){\nconstexpr bool is_short= !GEMMEPI_EXACT&&sizeof(A)==4;\nif constexpr(Activation==RELU)\nreturn x>0||x!=x?x:A(0);\n"
"else if constexpr(Activation==GELU_TANH&&is_short)\nreturn times_logistic_of(x,fmaf(x,fmaf(-0.10294324f,x*x,-2.3022082f),-8));\nelse if constexpr(Activation==SILU&&is_short)\nreturn times_logistic_of(x,fmaf(x,-1.4426950f,-8));\nelse if constexpr(Activation==SIGMOID&&is_short)\n"
"return times_logistic_of(1,fmaf(x,-1.4426950f,-8));\nelse if constexpr(Activation==QUICK_GELU&&is_short)\nreturn times_logistic_of(x,fmaf(x,-2.4554670f,-8));\nelse if constexpr(Activation==GELU_TANH)\nreturn times_logistic(x,A(1),gelu_gate(x).s);\n"
"else if constexpr(Activation==GELU_ERF&&is_short)\nreturn times_own_normal(x);\nelse if constexpr(Activation==GELU_ERF)\nreturn times_normal<false>(x,x);\n",
"else if constexpr(Activation==SILU)\nreturn times_logistic(x,x);\nelse if constexpr(Activation==SIGMOID)\nreturn times_logistic(A(1),x);\nelse if constexpr(Activation==TANH)\nreturn hyperbolic_tangent(x);\nelse if constexpr(Activation==LEAKY_RELU)\nreturn x>0||x!=x?x:parameter*x;\n"
"else if constexpr(Activation==ELU){\nA below=parameter*copysign(exponential_less_1(x),x);\nreturn x>0||x!=x?x:below;\n}else if constexpr(Activation==SQUARED_RELU)\nreturn x>0||x!=x?x*x:A(0);\nelse if constexpr(Activation==QUICK_GELU)\nreturn times_logistic(x,A(1),quick_gelu_gate(x).s);\n"
"else if constexpr(Activation==SOFTPLUS)\nreturn softplus(x);\nelse if constexpr(Activation==HARDSWISH)\nreturn x*from_0_to_1((x + 3)*A(1/6.0));\nelse if constexpr(Activation==MISH)\nreturn mish(x);\nelse if constexpr(Activation==HARDSIGMOID)\nreturn x!=x?x:from_0_to_1((x + 3)*A(1/6.0));\nelse\n"
"return x;\n}\n\n__device__ inline float logistic_of_power(float power){\nreturn fast_reciprocal(1 + fast_power_of_2(power));\n}\ntemplate<int Activation>__device__ inline float power_of_gate(float x){\nif constexpr(Activation==GELU_TANH)\nreturn x*fmaf(-0.10294324f,x*x,-2.3022082f);\n"
"else if constexpr(Activation==QUICK_GELU)\nreturn x* -2.4554670f;\nelse\nreturn x* -1.4426950f;\n}\n\ntemplate<int Activation,bool Gate,class A>__device__ inline A activate_sum(A x,A parameter){\nif constexpr(!GEMMEPI_EXACT&&sizeof(A)==4&&ENDS_TAILS<Activation>)\n"
"return x*logistic_of_power(power_of_gate<Activation>(x));\nelse if constexpr(!GEMMEPI_EXACT&&sizeof(A)==4&&Activation==GELU_ERF)\nreturn sum_times_own_normal<Gate>(x);\nelse\nreturn activate<Activation>(x,parameter);\n}\n\n\n"
"template<int Activation>__device__ inline float activate_scaled_sum(float z){\nconstexpr float scale=SUM_SCALE<Activation>;\nfloat power=z*fmaf(z,-z,-4.9122296f);\nreturn z*fast_reciprocal(fmaf(fast_power_of_2(power),scale,scale));\n}\n\n\n"
"template<int Activation,class A>__device__ inline A times_derivative(A v,A x,A parameter){\nif constexpr(Activation==RELU){\nreturn x>0?v:A(0);\n}else if constexpr(Activation==GELU_TANH){\nGate<A>gate=gelu_gate(x);\nreturn times_gate_derivative<true>(v,x,gate.s,gate.slope,gate.more);\n"
"}else if constexpr(Activation==GELU_ERF){\nreturn times_normal<true>(v,x);\n}else if constexpr(Activation==SILU){\nreturn times_gate_derivative<false>(v,x,logistic(x),A(1),A(0));\n}else if constexpr(Activation==SIGMOID){\nreturn times_logistic_derivative(v,A(1),-fabs(x));\n"
"}else if constexpr(Activation==TANH){\nreturn times_logistic_derivative(v,A(4),-2*fabs(x));\n}else if constexpr(Activation==LEAKY_RELU){\nreturn x>0?v:v*parameter;\n}else if constexpr(Activation==ELU){\nExponential<A>e=exponential(x);\n\n"
"A large=fabs(parameter)>1?parameter:A(1),small=fabs(parameter)>1?A(1):parameter;\nA size=large*e.root*e.part,below=(fabs(v)>=1?v:size)*e.root*(fabs(v)>=1?size:v)*small;\nreturn x>0?v:below;\n}else if constexpr(Activation==SQUARED_RELU){\nreturn x>0||x!=x?v*x*2:A(0);\n"
"}else if constexpr(Activation==QUICK_GELU){\nGate<A>gate=quick_gelu_gate(x);\nreturn times_gate_derivative<false>(v,x,gate.s,gate.slope,gate.more);\n}else if constexpr(Activation==SOFTPLUS){\nreturn times_logistic(v,x);\n}else if constexpr(Activation==HARDSWISH){\n"
"return v*(x<= -3?A(0):x>=3?A(1):x*A(1/3.0)+ A(0.5));\n}else if constexpr(Activation==MISH){\nreturn times_mish_derivative(v,x);\n}else if constexpr(Activation==HARDSIGMOID){\nreturn x> -3&&x<3?v*A(1/6.0):A(0);\n}else{\nreturn v;\n}\n}\n\n\n\n"
"template<int Activation>__device__ inline float rise_of_gate(float x){\nif constexpr(Activation==GELU_TANH)\nreturn x*fmaf(float(GELU_SLOPE*0.134145),x*x,float(GELU_SLOPE));\nelse\nreturn Activation==QUICK_GELU?1.702f*x:x;\n}\n"
"template<int Activation>__device__ inline float near_derivative(float x){\nif constexpr(Activation==GELU_ERF){\nfloat rest=short_normal_slope(fabsf(x));\nreturn fmaf(x<0?rest: -rest,fast_power_of_2(x* -0.72134752f*x),x<0?0:1);\n}else{\nfloat s=logistic_of_power(power_of_gate<Activation>(x));\n",
"return fmaf(rise_of_gate<Activation>(x),fmaf(-s,s,s),s);\n}\n}\n\n\ntemplate<int Activation,class A>__device__ inline A times_activation(A v,A x,A parameter){\nif constexpr(Activation==GELU_TANH)\nreturn times_logistic(v,x,gelu_gate(x).s);\nelse if constexpr(Activation==SILU)\n"
"return times_logistic(v,x,x);\nelse if constexpr(Activation==SIGMOID)\nreturn times_logistic(v,A(1),x);\nelse if constexpr(Activation==QUICK_GELU)\nreturn times_logistic(v,x,quick_gelu_gate(x).s);\nelse if constexpr(Activation==LEAKY_RELU)\nreturn x>0?v*x:product_in_range(x,parameter,v);\n"
"else if constexpr(Activation==ELU)\nreturn x>0?v*x:product_in_range(copysign(exponential_less_1(x),x),parameter,v);\nelse if constexpr(Activation==SQUARED_RELU)\nreturn x>0||x!=x?product_in_range(x,x,v):v*A(0);\nelse\nreturn v*activate<Activation>(x,parameter);\n}\n\n\n\n\n"
"template<class A>__device__ inline bool leaves_range(A both){\nreturn fabs(both)>LARGEST<A> ||(sizeof(A)==8&&both!=0&&fabs(both)<LEAST<A>);\n}\ntemplate<int Activation,class A,int N>\n__device__ inline void bounded_gate_gradients(const A(&dy)[N],const A(&value)[N],const A(&gate)[N],A parameter,\n"
"A(&out)[N]){\nbool apart=false;\n#pragma unroll\nfor(int i=0;i<N;i++){\nout[i]=dy[i]*value[i];\napart|=leaves_range(out[i]);\n}\nif(apart)\n#pragma unroll\nfor(int i=0;i<N;i++)\nif(leaves_range(out[i]))\nout[i]=fabs(dy[i])>fabs(value[i])?dy[i]:value[i];\n#pragma unroll\nfor(int i=0;i<N;i++)\n"
"out[i]=times_derivative<Activation>(out[i],gate[i],parameter);\nif(apart)\n#pragma unroll\nfor(int i=0;i<N;i++)\nif(leaves_range(dy[i]*value[i])&& !(SELECTS<Activation> &&out[i]==0))\nout[i]*=fabs(dy[i])>fabs(value[i])?value[i]:dy[i];\n}\n\n\n"
"template<int Activation,class A>__device__ inline A gate_gradient(A dy,A value,A gate,A parameter){\nif constexpr(Activation==SQUARED_RELU)\nreturn gate>0||gate!=gate?product_in_range(dy,value,gate)*2:A(0);\nelse if constexpr(Activation==LEAKY_RELU)\n"
"return gate>0?dy*value:product_in_range(dy,value,parameter);\nbool value_first=fabs(value)>fabs(dy);\nA both=dy*value,first=value_first?value:dy,last=value_first?dy:value;\nif(fabs(both)<=LARGEST<A> &&(fabs(both)>=LEAST<A> ||last==0)){\nfirst=both;\nlast=1;\n}\n"
"return times_derivative<Activation>(first,gate,parameter)*last;\n}\ntemplate<int Activation,class A,int N>\n__device__ inline void gate_gradients(const A(&dy)[N],const A(&value)[N],const A(&gate)[N],A parameter,A(&out)[N]){\nif constexpr(Activation==RELU){\n#pragma unroll\nfor(int i=0;i<N;i++)\n"
"out[i]=gate[i]>0?dy[i]*value[i]:A(0);\n}else if constexpr(HAS_ANY_SIZE<Activation>){\n#pragma unroll\nfor(int i=0;i<N;i++)\nout[i]=gate_gradient<Activation>(dy[i],value[i],gate[i],parameter);\n}else{\nbounded_gate_gradients<Activation>(dy,value,gate,parameter,out);\n}\n}\n",
    NULL};

static const char *const gemmepi__source_amax_cuh[] = {
"#line 1 \"src/kernels/amax.cuh\"\n\n#pragma once\n#include \"types.cuh\"\n\n\n__device__ inline u32 magnitude(float x){\nreturn __float_as_uint(x)&0x7fffffff;\n}\n__device__ inline u64 magnitude(double x){\nreturn(u64)__double_as_longlong(x)&0x7fffffffffffffff;\n}\n"
"__device__ inline u32 magnitude(int){\nreturn 0;\n}\n\ntemplate<class A,int N,class M>__device__ inline void keep_largest(const A(&v)[N],int valid,M&largest){\n#pragma unroll\nfor(int i=0;i<N;i++){\nM size=i<valid?magnitude(v[i]):0;\nlargest=size>largest?size:largest;\n}\n}\n\n\n"
"template<bool Is_f64>struct Amax_type{\ntypedef float type;\n};\ntemplate<>struct Amax_type<true>{\ntypedef double type;\n};\ntemplate<class T>using Amax_of=typename Amax_type<SAME<T,F64>>::type;\n\n"
"template<class Amax,class A,int N,class M>__device__ inline void keep_largest_of(const A(&v)[N],M&largest){\nAmax sizes[N];\n#pragma unroll\nfor(int i=0;i<N;i++)\nsizes[i]=(Amax)v[i];\nkeep_largest(sizes,N,largest);\n}\n\n\ntemplate<class M>__device__ inline M largest_of_warp(M largest){\n"
"#pragma unroll\nfor(int step=16;step>0;step/=2){\nM other=__shfl_xor_sync(0xffffffff,largest,step);\nlargest=other>largest?other:largest;\n}\nreturn largest;\n}\n\n\n\ntemplate<class M>__device__ inline void raise_to(void*amax,M largest){\nif(largest> *(volatile M*)amax)\n"
"atomicMax((M*)amax,largest);\n}\n\n\ntemplate<class M>__device__ inline void store_largest(void*amax,M largest){\nlargest=largest_of_warp(largest);\nif((threadIdx.y*blockDim.x + threadIdx.x)%32==0)\nraise_to(amax,largest);\n}\n\n\n"
"template<int Threads,class M>__device__ inline void store_largest_of_block(void*amax,M largest){\n__shared__ M warps[Threads/32];\nlargest=largest_of_warp(largest);\nif(threadIdx.x%32==0)\nwarps[threadIdx.x/32]=largest;\n__syncthreads();\nif(threadIdx.x<32){\n"
"largest=largest_of_warp(threadIdx.x<Threads/32?warps[threadIdx.x]:M(0));\nif(threadIdx.x==0)\nraise_to(amax,largest);\n}\n}\n",
    NULL};

static const char *const gemmepi__source_codes_h[] = {
"#line 1 \"src/kernels/codes.h\"\n\n\n#ifndef GEMMEPI_KERNELS_CODES_H\n#define GEMMEPI_KERNELS_CODES_H\n\n#define FLAG_BIAS 0x400\n#define FLAG_AUX 0x800\n#define FLAG_BACKWARD 0x1000\n#define FLAG_RESIDUAL 0x2000\n#define FLAG_BGRAD 0x4000\n#define FLAG_BGRAD_A 0x8000\n"
"#define FLAG_BGRAD_B 0x10000\n#define FLAG_GATED 0x40000\n#define FLAG_GATE_FIRST 0x80000\n#define FLAG_UPSTREAM 0x100000\n#define FLAG_ACCUMULATE_BIAS_GRAD 0x20000\n#define CODE_NONE 0x00\n#define CODE_RELU 0x0f\n#define CODE_GELU_TANH 0x17\n#define CODE_GELU_ERF 0x1b\n#define CODE_SILU 0x1d\n"
"#define CODE_SIGMOID 0x1e\n#define CODE_TANH 0x27\n#define CODE_LEAKY_RELU 0x2b\n#define CODE_ELU 0x2d\n#define CODE_SQUARED_RELU 0x2e\n#define CODE_QUICK_GELU 0x33\n#define CODE_SOFTPLUS 0x35\n#define CODE_HARDSWISH 0x36\n#define CODE_MISH 0x39\n#define CODE_HARDSIGMOID 0x3a\n\n"
"#define ACTIVATION_CODES(X) X(NONE) X(RELU) X(GELU_TANH) X(GELU_ERF) X(SILU) X(SIGMOID) X(TANH) X(LEAKY_RELU) X(ELU) X(SQUARED_RELU) X(QUICK_GELU) X(SOFTPLUS) X(HARDSWISH) X(MISH) X(HARDSIGMOID)\n\n#endif\n",
    NULL};

static const char *const gemmepi__source_convert_cu[] = {
"#line 1 \"src/kernels/convert.cu\"\n\n\n#include \"copy.cuh\"\n\n#ifndef GEMMEPI_X_TYPE\n#define GEMMEPI_X_TYPE   E4M3\n#define GEMMEPI_OUT_TYPE F16\n#define GEMMEPI_ALIGNED  0\n#endif\n\nconstexpr int THREADS=256;\n\n"
"extern \"C\" __global__ void __launch_bounds__(THREADS)gemmepi_convert(GEMMEPI_PARAMS gemmepi__convert_params p){\nCopied_run run;\nif(!find_copied_run<THREADS>(p,run))\nreturn;\nlong long left=p.columns - run.column;\nint valid=left<RUN?(int)left:RUN;\n"
"const GEMMEPI_X_TYPE*x=start_of_run<const GEMMEPI_X_TYPE>(p.x,run);\nGEMMEPI_OUT_TYPE*out=start_of_run<GEMMEPI_OUT_TYPE>(p.out,run);\n*reinterpret_cast<Words<GEMMEPI_OUT_TYPE> *>(out)=\nconvert_run<GEMMEPI_OUT_TYPE>(read_run<GEMMEPI_ALIGNED>(x,valid));\n}\n",
    NULL};

static const char *const gemmepi__source_copy_cuh[] = {
"#line 1 \"src/kernels/copy.cuh\"\n\n#pragma once\n#include \"types.cuh\"\n#include \"params.h\"\n\nstruct Copied_run{\nlong long item,row,column;\n};\n\n\n\ntemplate<int Threads>__device__ inline bool find_copied_run(const gemmepi__convert_params&p,Copied_run&mine){\n"
"long long runs=p.out.ld/RUN,lines=p.items*p.rows;\nlong long at=(long long)blockIdx.x*Threads + threadIdx.x,line;\nif(at>=lines*runs)\nreturn false;\nif(lines*runs<=0xffffffff){\nline=(u32)at/(u32)runs;\nmine.item=(u32)line/(u32)p.rows;\n}else{\nline=at/runs;\nmine.item=line/p.rows;\n}\n"
"after_launches_before();\nmine.row=line - mine.item*p.rows;\nmine.column=(at - line*runs)*RUN;\nreturn true;\n}\n\n\ntemplate<class T>__device__ inline T*start_of_run(const gemmepi__kernel_matrix&matrix,const Copied_run&run){\n"
"return(T*)matrix.data + run.item*matrix.stride + run.row*matrix.ld + run.column;\n}\n",
    NULL};

#ifndef GEMMEPI_NO_ELEMENTWISE
static const char *const gemmepi__source_elementwise_cu[] = {
"#line 1 \"src/kernels/elementwise.cu\"\n\n\n#include \"operations.cuh\"\n\n#ifndef GEMMEPI_TILE\n#define GEMMEPI_AT_ONCE    2\n#define GEMMEPI_REPEATS    0\n#define GEMMEPI_TILE       0\n#define GEMMEPI_PER_THREAD 16\n#define GEMMEPI_MODES      0u\n#endif\n\nconstexpr int THREADS=256;\n\n"
"#if GEMMEPI_TILE == 0\n\n\n\nconstexpr int AT_ONCE=GEMMEPI_AT_ONCE;\n\ntemplate<int Tensor>constexpr bool REPEATS=(GEMMEPI_REPEATS>>Tensor&1)!=0;\n\ntemplate<int Tensor>struct Loaded{\nVector<Tensor>words[AT_ONCE];\n};\n\ntemplate<int Tensor>\n"
"__device__ inline void load_dense(const gemmepi__contiguous_params&p,long long first,Loaded<Tensor> &x){\nif constexpr(USED<Tensor> && !REPEATS<Tensor>)\n#pragma unroll\nfor(int r=0;r<AT_ONCE;r++){\nlong long at=first +(long long)r*THREADS*VECTOR,left=p.count - at;\n"
"const Type<Tensor> *from=(const Type<Tensor> *)p.data[Tensor]+ at;\nx.words[r]=load_vector<Tensor>(from,left>=VECTOR?VECTOR:(int)left);\n}\n}\n\ntemplate<int Tensor>\n__device__ inline void take_dense(const gemmepi__contiguous_params&p,const Loaded<Tensor> &x,int r,\nAcc(&v)[TENSORS][VECTOR]){\n"
"if constexpr(USED<Tensor> &&REPEATS<Tensor>)\nrepeat_value<Tensor>(*(const Type<Tensor> *)p.data[Tensor],v);\nelse if constexpr(USED<Tensor>)\nto_values<Tensor>(x.words[r],v);\n}\n\ntemplate<int Tensor>\n"
"__device__ inline void store_dense(const gemmepi__contiguous_params&p,long long at,int valid,\nconst Acc(&v)[TENSORS][VECTOR]){\nif constexpr(USED<Tensor>)\nstore_vector<Tensor>((Type<Tensor> *)p.data[Tensor]+ at,valid,from_values<Tensor>(v));\n}\n\n\n"
"extern \"C\" __global__ void __launch_bounds__(THREADS)\ngemmepi_contiguous(GEMMEPI_PARAMS gemmepi__contiguous_params p){\nlong long first=(long long)blockIdx.x*(THREADS*AT_ONCE*VECTOR)+ threadIdx.x*VECTOR;\nScalars s=scalars_of(p.operation);\nMagnitude largest=0;\nLoaded<IN_A>a;\n"
"Loaded<IN_B>b;\nLoaded<IN_W>w;\nLoaded<IN_DY>dy;\nload_dense<IN_A>(p,first,a);\nload_dense<IN_B>(p,first,b);\nload_dense<IN_W>(p,first,w);\nload_dense<IN_DY>(p,first,dy);\n#pragma unroll\nfor(int r=0;r<AT_ONCE;r++){\nlong long at=first +(long long)r*THREADS*VECTOR,left=p.count - at;\n"
"Acc v[TENSORS][VECTOR];\ntake_dense<IN_A>(p,a,r,v);\ntake_dense<IN_B>(p,b,r,v);\ntake_dense<IN_W>(p,w,r,v);\ntake_dense<IN_DY>(p,dy,r,v);\noperate_on(v,s,largest);\nint valid=left>=VECTOR?VECTOR:(int)left;\n#define GEMMEPI_STORE(Tensor) store_dense<Tensor>(p, at, valid, v);\n"
"GEMMEPI_EACH_OUTPUT(GEMMEPI_STORE)\n#undef GEMMEPI_STORE\n}\nif(CAST_AMAX)\nstore_largest_of_block<THREADS>(p.operation.amax,largest);\n}\n\n#else\n\n\n\n\n\nenum{\nALONG_VECTORS,\nREPEATED,\nALONG_I,\nALONG_J,\nCOLUMNS\n};\n"
"template<int Tensor>constexpr int MODE=USED<Tensor> ?GEMMEPI_MODES>>4*Tensor&15:REPEATED;\ntemplate<int Tensor>constexpr bool IS_TRANSPOSED=MODE<Tensor> ==ALONG_J||MODE<Tensor> ==COLUMNS;\ntemplate<int Tensor>constexpr bool IS_EXCHANGED=MODE<Tensor> ==ALONG_I||IS_TRANSPOSED<Tensor>;\n\n"
"constexpr int PER_THREAD=GEMMEPI_PER_THREAD;\nconstexpr int TILE_I=GEMMEPI_TILE,TILE_J=THREADS*PER_THREAD/TILE_I;\nconstexpr int VECTORS=PER_THREAD/VECTOR;\nstatic_assert(TILE_J>=1,\"the tile is larger than a block's elements\");\n\n"
"constexpr bool TRANSPOSES=IS_TRANSPOSED<IN_A> ||IS_TRANSPOSED<IN_B> ||IS_TRANSPOSED<IN_W> ||IS_TRANSPOSED<IN_DY> ||\nIS_TRANSPOSED<OUT_Y> ||IS_TRANSPOSED<OUT_DA> ||IS_TRANSPOSED<OUT_DB> ||IS_TRANSPOSED<OUT_DW>;\n"
"constexpr bool EXCHANGES=IS_EXCHANGED<IN_A> ||IS_EXCHANGED<IN_B> ||IS_EXCHANGED<IN_W> ||IS_EXCHANGED<IN_DY> ||\nIS_EXCHANGED<OUT_Y> ||IS_EXCHANGED<OUT_DA> ||IS_EXCHANGED<OUT_DB> ||IS_EXCHANGED<OUT_DW>;\n\n\n\n"
"template<class T>constexpr int PITCH=TILE_I +(TRANSPOSES?(sizeof(T)<4?4/sizeof(T):1):0);\nconstexpr int SHARED_BYTES=EXCHANGES?TILE_J*(TILE_I +(TRANSPOSES?4:0))*LARGEST_SIZE:16;\n\n\n\ntemplate<int Mode>struct Walk{\nstatic constexpr bool BY_J=Mode==ALONG_J||Mode==COLUMNS;\n"
"static constexpr int UNIT=Mode==ALONG_I||Mode==ALONG_J?1:VECTOR;\nstatic constexpr int WIDTH=(BY_J?TILE_J:TILE_I)/UNIT;\n",
"static constexpr int STEPS=PER_THREAD/UNIT;\nint i,j;\n__device__ Walk(){\nint along=threadIdx.x%WIDTH*UNIT,across=threadIdx.x/WIDTH;\ni=BY_J?across:along;\nj=BY_J?along:across;\n}\nstatic constexpr __device__ int along(int step){\nreturn step*THREADS%WIDTH*UNIT;\n}\n"
"static constexpr __device__ int across(int step){\nreturn step*THREADS/WIDTH;\n}\nstatic constexpr __device__ int i_of(int step){\nreturn BY_J?across(step):along(step);\n}\nstatic constexpr __device__ int j_of(int step){\nreturn BY_J?along(step):across(step);\n}\n};\n\n\nstruct Place{\n"
"int extent_i,extent_j;\nlong long i,j;\nu32 outer;\n};\n\ntemplate<int Tensor>__device__ inline Type<Tensor> *tile_of(const gemmepi__strided_params&p,const Place&place){\nlong long at=place.i*p.stride[Tensor][0]+ place.j*p.stride[Tensor][1];\nu32 outer=place.outer;\nfor(int d=2;d<p.rank;d++){\n"
"u32 rest=outer/p.extent[d];\nat +=(long long)(outer - rest*p.extent[d])*p.stride[Tensor][d];\nouter=rest;\n}\nreturn(Type<Tensor> *)p.data[Tensor]+ at;\n}\n\ntemplate<int Tensor>struct Tile{\nVector<Tensor>words[VECTORS];\nType<Tensor>single[VECTORS];\nType<Tensor>elements[PER_THREAD];\n};\n\n\n"
"template<int Mode>__device__ inline int exist(const Place&place,const Walk<Mode> &walk,int step){\nint i=place.extent_i - walk.i - Walk<Mode>::i_of(step),j=place.extent_j - walk.j - Walk<Mode>::j_of(step);\nint left=Walk<Mode>::BY_J?j:i;\nif((Walk<Mode>::BY_J?i:j)<=0)\nreturn 0;\n"
"return left<Walk<Mode>::UNIT?left:Walk<Mode>::UNIT;\n}\n\ntemplate<int Tensor>\n__device__ inline void load_tile(const gemmepi__strided_params&p,const Place&place,Tile<Tensor> &x){\nif constexpr(USED<Tensor>){\ntypedef Walk<MODE<Tensor>>W;\nW walk;\n"
"long long step_i=p.stride[Tensor][0],step_j=p.stride[Tensor][1];\nconst Type<Tensor> *from=tile_of<Tensor>(p,place)+ walk.i*step_i + walk.j*step_j;\n#pragma unroll\nfor(int step=0;step<W::STEPS;step++){\nconst Type<Tensor> *at=from +(W::i_of(step)*step_i + W::j_of(step)*step_j);\n"
"int valid=exist(place,walk,step);\nif constexpr(W::UNIT==1){\nx.elements[step]=Type<Tensor>();\nif(valid>0)\nx.elements[step]= *at;\n}else if constexpr(MODE<Tensor> ==REPEATED){\nx.single[step]=Type<Tensor>();\nif(valid>0)\nx.single[step]= *at;\n}else{\n"
"x.words[step]=load_vector<Tensor>(at,valid);\n}\n}\n}\n}\n\n\ntemplate<int Tensor>__device__ inline Vector<Tensor>vector_from_shared(const Type<Tensor> *from){\nif constexpr(!TRANSPOSES){\nreturn*reinterpret_cast<const Vector<Tensor> *>(from);\n}else{\nVector<Tensor>words;\n#pragma unroll\n"
"for(int k=0;k<sizeof words/sizeof words.at[0];k++)\nwords.at[k]=reinterpret_cast<const typename Vector<Tensor>::Word*>(from)[k];\nreturn words;\n}\n}\ntemplate<int Tensor>__device__ inline void vector_to_shared(Type<Tensor> *to,const Vector<Tensor> &words){\nif constexpr(!TRANSPOSES){\n"
"*reinterpret_cast<Vector<Tensor> *>(to)=words;\n}else{\n#pragma unroll\nfor(int k=0;k<sizeof words/sizeof words.at[0];k++)\nreinterpret_cast<typename Vector<Tensor>::Word*>(to)[k]=words.at[k];\n}\n}\n\n\ntemplate<int Tensor>__device__ inline void exchange_input(char*shared,Tile<Tensor> &x){\n"
"if constexpr(IS_EXCHANGED<Tensor>){\ntypedef Walk<MODE<Tensor>>W;\ntypedef Walk<ALONG_VECTORS>V;\nconstexpr int pitch=PITCH<Type<Tensor>>;\nW walk;\nV vectors;\nType<Tensor> *tile=(Type<Tensor> *)shared;\n__syncthreads();\n#pragma unroll\nfor(int step=0;step<W::STEPS;step++){\n"
"Type<Tensor> *to=tile +(walk.j*pitch + walk.i)+(W::j_of(step)*pitch + W::i_of(step));\nif constexpr(W::UNIT==1){\n*to=x.elements[step];\n}else{\nRun<Type<Tensor>,VECTOR>run=run_of(x.words[step]);\n#pragma unroll\nfor(int k=0;k<VECTOR;k++)\nto[k*pitch]=run.at[k];\n}\n}\n__syncthreads();\n"
"#pragma unroll\nfor(int v=0;v<VECTORS;v++)\nx.words[v]=vector_from_shared<Tensor>(tile +(vectors.j*pitch + vectors.i)+(V::j_of(v)*pitch + V::i_of(v)));\n}\n}\n\ntemplate<int Tensor>\n__device__ inline void take_tile(const Tile<Tensor> &x,int v,Acc(&values)[TENSORS][VECTOR]){\n"
"if constexpr(USED<Tensor> &&MODE<Tensor> ==REPEATED)\n",
"repeat_value<Tensor>(x.single[v],values);\nelse if constexpr(USED<Tensor>)\nto_values<Tensor>(x.words[v],values);\n}\n\ntemplate<int Tensor>\n__device__ inline void keep_tile(Tile<Tensor> &y,int v,const Acc(&values)[TENSORS][VECTOR]){\nif constexpr(USED<Tensor>)\n"
"y.words[v]=from_values<Tensor>(values);\n}\n\ntemplate<int Tensor>\n__device__ inline void store_tile(const gemmepi__strided_params&p,const Place&place,char*shared,const Tile<Tensor> &y){\nif constexpr(USED<Tensor>){\ntypedef Walk<MODE<Tensor>>W;\ntypedef Walk<ALONG_VECTORS>V;\n"
"constexpr int pitch=PITCH<Type<Tensor>>;\nW walk;\nV vectors;\nlong long step_i=p.stride[Tensor][0],step_j=p.stride[Tensor][1];\nType<Tensor> *tile=(Type<Tensor> *)shared,*to=tile_of<Tensor>(p,place)+ walk.i*step_i + walk.j*step_j;\nif constexpr(IS_EXCHANGED<Tensor>){\n__syncthreads();\n"
"#pragma unroll\nfor(int v=0;v<VECTORS;v++)\nvector_to_shared<Tensor>(tile +(vectors.j*pitch + vectors.i)+(V::j_of(v)*pitch + V::i_of(v)),y.words[v]);\n__syncthreads();\n}\n#pragma unroll\nfor(int step=0;step<W::STEPS;step++){\n"
"const Type<Tensor> *from=tile +(walk.j*pitch + walk.i)+(W::j_of(step)*pitch + W::i_of(step));\nType<Tensor> *at=to +(W::i_of(step)*step_i + W::j_of(step)*step_j);\nint valid=exist(place,walk,step);\nif constexpr(MODE<Tensor> ==ALONG_VECTORS){\nstore_vector<Tensor>(at,valid,y.words[step]);\n"
"}else if constexpr(W::UNIT==1){\nif(valid>0)\n*at= *from;\n}else{\nRun<Type<Tensor>,VECTOR>run;\n#pragma unroll\nfor(int k=0;k<VECTOR;k++)\nrun.at[k]=from[k*pitch];\nstore_vector<Tensor>(at,valid,words_of(run));\n}\n}\n}\n}\n\n\n"
"extern \"C\" __global__ void __launch_bounds__(THREADS)gemmepi_strided(GEMMEPI_PARAMS gemmepi__strided_params p){\n__shared__ alignas(16)char shared[SHARED_BYTES];\nu32 rest=blockIdx.x/p.tiles_i;\nPlace place;\nplace.i=(long long)(blockIdx.x - rest*p.tiles_i)*TILE_I;\n"
"place.outer=rest/p.tiles_j;\nplace.j=(long long)(rest - place.outer*p.tiles_j)*TILE_J;\nplace.extent_i=p.extent_i - place.i<TILE_I?(int)(p.extent_i - place.i):TILE_I;\nplace.extent_j=p.extent_j - place.j<TILE_J?(int)(p.extent_j - place.j):TILE_J;\nScalars s=scalars_of(p.operation);\n"
"Magnitude largest=0;\nTile<IN_A>a;\nTile<IN_B>b;\nTile<IN_W>w;\nTile<IN_DY>dy;\nTile<OUT_Y>y;\nTile<OUT_DA>da;\nTile<OUT_DB>db;\nTile<OUT_DW>dw;\nload_tile(p,place,a);\nload_tile(p,place,b);\nload_tile(p,place,w);\nload_tile(p,place,dy);\nexchange_input(shared,a);\nexchange_input(shared,b);\n"
"exchange_input(shared,w);\nexchange_input(shared,dy);\n#pragma unroll\nfor(int v=0;v<VECTORS;v++){\nAcc values[TENSORS][VECTOR];\ntake_tile(a,v,values);\ntake_tile(b,v,values);\ntake_tile(w,v,values);\ntake_tile(dy,v,values);\noperate_on(values,s,largest);\nkeep_tile(y,v,values);\n"
"keep_tile(da,v,values);\nkeep_tile(db,v,values);\nkeep_tile(dw,v,values);\n}\nstore_tile(p,place,shared,y);\nstore_tile(p,place,shared,da);\nstore_tile(p,place,shared,db);\nstore_tile(p,place,shared,dw);\nif(CAST_AMAX)\nstore_largest_of_block<THREADS>(p.operation.amax,largest);\n}\n\n#endif\n",
    NULL};
#endif

static const char *const gemmepi__source_epilogue_cuh[] = {
"#line 1 \"src/kernels/epilogue.cuh\"\n#line 13\n#pragma once\n#include \"epilogue_column_sums.cuh\"\n#include \"epilogue_formula.cuh\"\n#include \"epilogue_fragment.cuh\"\n#include \"epilogue_mask.cuh\"\n#include \"epilogue_staging.cuh\"\n\n"
"__device__ inline Acc scalar(const double*on_device,double given){\nreturn from_acc<Acc>(on_device? *on_device:given);\n}\n\ntemplate<bool Exists>__device__ inline Acc tensor_scale(const gemmepi__kernel_scale&scale,long long item){\nif constexpr(Exists)\n"
"return(Acc)scale.data[item*scale.stride];\nelse\nreturn 1;\n}\n\n__device__ inline bool takes_c(const gemmepi__epilogue_params&p,const Epilogue_state&state){\nreturn!GEMMEPI_APPLIED&&p.uses_c&&state.beta!=0;\n}\n\n"
"__device__ inline Epilogue_state begin_epilogue(const gemmepi__epilogue_params&p,long long item,long long column,\nint valid){\nEpilogue_state state={};\nstate.alpha=GEMMEPI_APPLIED?Acc(1):scalar(p.device_alpha,p.alpha);\nstate.beta=GEMMEPI_APPLIED?Acc(0):scalar(p.device_beta,p.beta);\n"
"if(GEMMEPI_SCALE_A==SCALE_TENSOR)\nstate.alpha=product(state.alpha,tensor_scale<true>(p.scale_a,item));\nif(GEMMEPI_SCALE_B==SCALE_TENSOR)\nstate.alpha=product(state.alpha,tensor_scale<true>(p.scale_b,item));\nif(GEMMEPI_SCALE_B==SCALE_OUTER){\n#pragma unroll\n"
"for(int half=0;half<HALVES_IN;half++){\nconst float*scale=p.scale_b.data + item*p.scale_b.stride + column + half*p.n;\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nstate.column_factors[half][i]=i<valid?product(state.alpha,(Acc)scale[i]):Acc(0);\n}\n}\n"
"state.scale_c=takes_c(p,state)?tensor_scale<SCALES_C>(p.scale_c,item):Acc(1);\nstate.scale_d=tensor_scale<SCALES_D>(p.scale_d,item);\nstate.scale_aux=tensor_scale<SCALES_AUX>(p.scale_aux,item);\nstate.scale_residual=tensor_scale<SCALES_RESIDUAL>(p.scale_residual,item);\nreturn state;\n}\n\n"
"__device__ inline void load_saved(const gemmepi__epilogue_params&p,const Epilogue_state&state,long long item,\nlong long row,long long column,int valid,Saved&saved){\nif(!BACKWARD||(!SPREAD&&valid==0))\nreturn;\nif constexpr(LOADS_MASK){\nsaved.mask=state.loaded_mask>>2*lane_of_row();\n"
"}else if constexpr(AUX_IS_MASK&&SPREAD){\nsaved.mask=load_spread_mask(p,item,row,column,valid);\n}else if constexpr(AUX_IS_MASK){\nsaved.mask=((const u8*)p.aux.data)[offset(p.aux,item,row,column)/8];\n}else{\n#pragma unroll\nfor(int half=0;half<HALVES_SAVED;half++){\nif constexpr(LOADS_AUX)\n"
"saved.runs[half]=unstage_run<GEMMEPI_AUX_TYPE>(state.loaded_aux[half]);\nelse\nsaved.runs[half]=read(\n(const GEMMEPI_AUX_TYPE*)p.aux.data + offset(p.aux,item,row,column + half*p.n),valid);\n}\n}\n}\n\n\n"
"__device__ inline void finish_product(const gemmepi__epilogue_params&p,Epilogue_state&state,const Of_columns&of,\nint half,long long item,long long row,long long column,int valid,\nAcc(&v)[RUN]){\nAcc other[RUN];\nAcc row_factor=GEMMEPI_SCALE_B==SCALE_OUTER?Acc(1):state.alpha;\n"
"if(GEMMEPI_SCALE_A==SCALE_OUTER)\nrow_factor=product(row_factor,(Acc)p.scale_a.data[item*p.scale_a.stride + row]);\nmultiply_by_factors(row_factor,state.column_factors[half],v);\nif(takes_c(p,state)){\nload<GEMMEPI_C_TYPE>(p.c,item,row,column,valid,other);\n"
"add_product(SCALES_C?product(state.beta,state.scale_c):state.beta,other,v);\n}\nif(HAS_BIAS&& !BIAS_FIRST){\nto_accs(of.bias[half],other);\nadd_bias(half,other,v);\n}\nif(AMAX_AUX)\nkeep_largest_of_run(v,valid,state.largest_aux);\nif(WRITES_AUX){\nif(KEEPS_MASK)\nkeep_mask(state,v);\n"
"else if(AUX_IS_MASK)\nstore_mask(p.aux,item,row,column,valid,v);\nelse if(SCALES_AUX)\nstore_scaled<GEMMEPI_AUX_TYPE,STAGES_AUX>(p.aux,state.staged_aux[half],state.scale_aux,item,row,column,\nvalid,v);\nelse\n"
"store<GEMMEPI_AUX_TYPE,STAGES_AUX>(p.aux,state.staged_aux[half],item,row,column,valid,v);\n}\n}\n\n\ntemplate<bool IsNear>\n__device__ inline void apply_derivative(const gemmepi__epilogue_params&p,const Epilogue_state&state,const Saved&saved,\nAcc(&v)[HALVES][RUN]){\nif constexpr(AUX_IS_MASK){\n"
"#pragma unroll\nfor(int i=0;i<RUN;i++)\nv[0][i]=saved.mask>>place(i)&1?v[0][i]:Acc(0);\n",
"}else if constexpr(!SAME<Acc,I32>){\nAcc aside[HALVES_SAVED][RUN];\n#pragma unroll\nfor(int half=0;half<HALVES_SAVED;half++){\nto_accs(saved.runs[half],aside[half]);\n#pragma unroll\nfor(int i=0;SCALES_AUX&&i<RUN;i++)\naside[half][i]*=state.scale_aux;\n}\nif constexpr(GATED){\n"
"const Acc*dy=UPSTREAM?aside[0]:v[0];\nconst Acc(*pair)[RUN]=UPSTREAM?v:aside;\n#pragma unroll\nfor(int i=0;i<RUN;i +=TOGETHER){\nAcc upstream[TOGETHER],value[TOGETHER],gate[TOGETHER],of_gate[TOGETHER];\nmemcpy(upstream,dy + i,sizeof upstream);\nmemcpy(value,pair[VALUE]+ i,sizeof value);\n"
"memcpy(gate,pair[GATE]+ i,sizeof gate);\ngate_gradients<ACTIVATION>(upstream,value,gate,(Acc)p.parameter,of_gate);\n#pragma unroll\nfor(int j=0;j<TOGETHER;j++)\nv[VALUE][i + j]=times_activation<ACTIVATION>(upstream[j],gate[j],(Acc)p.parameter);\nmemcpy(v[GATE]+ i,of_gate,sizeof of_gate);\n}\n"
"}else{\ndifferentiate<IsNear>((Acc)p.parameter,aside,v);\n}\n}\n}\n\n\ntemplate<bool IsNear=false>\n__device__ inline void epilogue(const gemmepi__epilogue_params&p,Epilogue_state&state,const Of_columns&of,\nconst Saved&saved,long long item,long long row,long long column,int valid,\n"
"Acc(&v)[HALVES][RUN]){\n#pragma unroll\nfor(int half=0;half<HALVES_IN;half++)\nfinish_product(p,state,of,half,item,row,column + half*p.n,valid,v[half]);\nif constexpr(BACKWARD){\napply_derivative<IsNear>(p,state,saved,v);\n}else if constexpr(GATED){\nmultiply_halves((Acc)p.parameter,v);\n}else{\n"
"#pragma unroll\nfor(int i=0;i<RUN;i++)\nv[0][i]=activate_finished((Acc)p.parameter,v[0][i]);\n}\nif(HAS_RESIDUAL)\n#pragma unroll\nfor(int half=0;half<HALVES_OUT;half++){\nAcc other[RUN];\nif constexpr(LOADS_RESIDUAL)\n"
"to_accs(unstage_run<GEMMEPI_RESIDUAL_TYPE>(state.loaded_residual[half]),other);\nelse\nload<GEMMEPI_RESIDUAL_TYPE>(p.residual,item,row,column + half*p.n,valid,other);\nadd_residual(state.scale_residual,other,v[half]);\n}\n}\n\n\n"
"__device__ inline void store_result(const gemmepi__epilogue_params&p,Epilogue_state&state,long long item,\nlong long row,long long column,int valid,const Acc(&v)[HALVES][RUN]){\n#pragma unroll\nfor(int half=0;half<HALVES_OUT;half++){\nif(AMAX_D)\n"
"keep_largest_of_run(v[half],valid,state.largest_d);\nif(!GEMMEPI_STORES_D)\ncontinue;\nif(SCALES_D)\nstore_scaled<GEMMEPI_D_TYPE,STAGES_D>(p.d,state.staged_d[half],state.scale_d,item,row,column + half*p.n,valid,\nv[half]);\nelse\n"
"store<GEMMEPI_D_TYPE,STAGES_D>(p.d,state.staged_d[half],item,row,column + half*p.n,valid,v[half]);\n}\n}\n\n\n__device__ inline void end_epilogue(const gemmepi__epilogue_params&p,const Epilogue_state&state){\nif(AMAX_D)\nstore_largest(p.amax_d,state.largest_d);\nif(AMAX_AUX)\n"
"store_largest(p.amax_aux,state.largest_aux);\n}\n",
    NULL};

static const char *const gemmepi__source_epilogue_column_sums_cuh[] = {
"#line 1 \"src/kernels/epilogue_column_sums.cuh\"\n\n#pragma once\n#include \"epilogue_formula.cuh\"\n#include \"epilogue_fragment.cuh\"\n\n\n\ntemplate<int Threads>\n__device__ inline void store_partials(const gemmepi__epilogue_params&p,long long part,long long column,int valid,\n"
"u32 x,u32 y,u32 width,const Acc(&sums)[HALVES_OUT][RUN]){\n__shared__ Acc shared[HALVES_OUT*RUN][Threads];\nu32 thread=y*width + x;\n#pragma unroll\nfor(int i=0;i<HALVES_OUT*RUN;i++)\nshared[i][thread]=sums[i/RUN][i%RUN];\nfor(u32 half=Threads/width/2;half>0;half/=2){\n__syncthreads();\n"
"if(y<half)\n#pragma unroll\nfor(int i=0;i<HALVES_OUT*RUN;i++)\nshared[i][thread]=sum(shared[i][thread],shared[i][thread + half*width]);\n}\nif(y==0)\nfor(int half=0;half<HALVES_OUT;half++)\nfor(int i=0;i<valid;i++)\n"
"((Acc*)p.partials)[(part*HALVES_OUT + half)*p.n + column + i]=shared[half*RUN + i][thread];\n}\n\n\n\n__device__ inline Acc sum_of_rows(const Acc(&of_run)[RUN]){\nstatic_assert(!SPREAD||RUN==8,\"a sum for each lane\");\nAcc left[RUN];\n#pragma unroll\nfor(int j=0;j<RUN;j++)\nleft[j]=of_run[j];\n"
"#pragma unroll\nfor(int count=RUN/2;count>0;count/=2)\n#pragma unroll\nfor(int j=0;j<count;j++){\nbool upper=threadIdx.x&(u32)count*OF_ROWS;\nAcc sent=upper?left[j]:left[j + count],kept=upper?left[j + count]:left[j];\nleft[j]=kept + __shfl_xor_sync(0xffffffffu,sent,count*OF_ROWS);\n}\n"
"return left[0];\n}\n\n\n\ntemplate<bool AtOnce>struct Column_sums{\nAcc of_lane[HALVES_OUT][RUN],of_lanes[HALVES_OUT];\n\n__device__ inline Column_sums():of_lanes{}{\nbegin_rows();\n}\n__device__ inline void begin_rows(){\n#pragma unroll\nfor(int i=0;i<HALVES_OUT*RUN;i++)\n"
"of_lane[i/RUN][i%RUN]=Acc(-0.0);\n}\n\n\n__device__ inline void add(const Acc(&v)[HALVES][RUN],bool exists){\nif(exists)\n#pragma unroll\nfor(int i=0;i<HALVES_OUT*RUN;i++)\nof_lane[i/RUN][i%RUN]+=v[i/RUN][i%RUN];\n}\n\n\n__device__ inline void end_rows(){\nif constexpr(AtOnce){\n#pragma unroll\n"
"for(int half=0;half<HALVES_OUT;half++)\nof_lanes[half]+=sum_of_rows(of_lane[half]);\nbegin_rows();\n}\n}\n\n\n__device__ static inline int column(){\nreturn lane_of_row()*2 + place(row_of_lane());\n}\n__device__ inline Acc sum(int half)const{\n"
"return AtOnce?of_lanes[half]:sum_of_rows(of_lane[half]);\n}\n\n\n__device__ inline void store(const gemmepi__epilogue_params&p,long long line,int first)const{\n#pragma unroll\nfor(int half=0;half<HALVES_OUT;half++){\nAcc of_column=sum(half);\nif(first + column()<(int)p.n)\n"
"((Acc*)p.partials)[(line*HALVES_OUT + half)*p.n + first + column()]=of_column;\n}\n}\n};\n",
    NULL};

static const char *const gemmepi__source_epilogue_formula_cuh[] = {
"#line 1 \"src/kernels/epilogue_formula.cuh\"\n\n#pragma once\n#include \"epilogue_parameters.cuh\"\n\n\n\n__device__ inline int product(int x,int y){\nreturn(int)((u32)x*(u32)y);\n}\n__device__ inline int sum(int x,int y){\nreturn(int)((u32)x +(u32)y);\n}\n"
"template<class A>__device__ inline A product(A x,A y){\nreturn x*y;\n}\ntemplate<class A>__device__ inline A sum(A x,A y){\nreturn x + y;\n}\n\n\n__device__ inline void multiply_by_factors(Acc row_factor,const Acc(&column_factors)[RUN],Acc(&v)[RUN]){\n"
"constexpr bool by_column=GEMMEPI_SCALE_B==SCALE_OUTER;\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nv[i]=product(v[i],!by_column                       ?row_factor\n:GEMMEPI_SCALE_A==SCALE_OUTER?product(row_factor,column_factors[i])\n:column_factors[i]);\n}\n\n"
"__device__ inline void add_product(Acc factor,const Acc(&c)[RUN],Acc(&v)[RUN]){\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nv[i]=sum(v[i],product(factor,c[i]));\n}\n\n\nconstexpr bool SCALES_SUM=\n"
"HAS_BIAS&& !BIAS_FIRST&& !BACKWARD&& !WRITES_AUX&& !AMAX_AUX&&SAME<Acc,F32> &&SUM_SCALE<ACTIVATION> !=0;\n\n\n__device__ inline void add_bias(int half,const Acc(&bias)[RUN],Acc(&v)[RUN]){\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nif constexpr(SCALES_SUM)\n"
"v[i]=half==GATE%HALVES?fmaf(v[i],SUM_SCALE<ACTIVATION>,bias[i]*SUM_SCALE<ACTIVATION>)\n:v[i]+ bias[i];\nelse\nv[i]=sum(v[i],bias[i]);\n}\n\n\n__device__ inline Acc activate_finished(Acc parameter,Acc v){\nif constexpr(SCALES_SUM)\nreturn activate_scaled_sum<ACTIVATION>(v);\nelse\n"
"return activate_sum<ACTIVATION,GATED>(v,parameter);\n}\n\n\n__device__ inline void multiply_halves(Acc parameter,Acc(&v)[HALVES][RUN]){\n#pragma unroll\nfor(int i=0;i<RUN;i++){\nif constexpr(SAME<Acc,I32>)\nv[0][i]=product(v[VALUE%HALVES][i],activate<ACTIVATION>(v[GATE%HALVES][i],Acc(0)));\n"
"else if constexpr(GATES_BY_SUMS<ACTIVATION>)\nv[0][i]=v[VALUE%HALVES][i]*activate_finished(parameter,v[GATE%HALVES][i]);\nelse\nv[0][i]=times_activation<ACTIVATION>(v[VALUE%HALVES][i],v[GATE%HALVES][i],parameter);\n}\n}\n\n\n"
"constexpr int TOGETHER= !SPREAD?1:GEMMEPI_APPLIED&& !HAS_RESIDUAL?RUN:4;\n\n\ntemplate<bool IsNear>\n__device__ inline void differentiate(Acc parameter,const Acc(&saved)[HALVES_SAVED][RUN],Acc(&v)[HALVES][RUN]){\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nif constexpr(IsNear)\n"
"v[0][i]*=near_derivative<ACTIVATION>(saved[0][i]);\nelse\nv[0][i]=UPSTREAM?times_derivative<ACTIVATION>(saved[0][i],v[0][i],parameter)\n:times_derivative<ACTIVATION>(v[0][i],saved[0][i],parameter);\n}\n\n__device__ inline void add_residual(Acc scale,const Acc(&residual)[RUN],Acc(&v)[RUN]){\n"
"#pragma unroll\nfor(int i=0;i<RUN;i++)\nv[i]=sum(v[i],SCALES_RESIDUAL?product(residual[i],scale):residual[i]);\n}\n",
    NULL};

static const char *const gemmepi__source_epilogue_fragment_cuh[] = {
"#line 1 \"src/kernels/epilogue_fragment.cuh\"\n\n#pragma once\n#include \"epilogue_parameters.cuh\"\n\n__device__ inline long long offset(const gemmepi__kernel_matrix&x,long long item,long long row,long long column){\nreturn item*x.stride + row*x.ld + column;\n}\n\n\n"
"__device__ constexpr int place(int i){\nreturn SPREAD?i/2*8 + i%2:i;\n}\n\nconstexpr int IN_ROW=APART?16:2,OF_ROWS=APART?2:4;\n__device__ inline int lane_of_row(){\nreturn APART?(int)(threadIdx.x%2 + threadIdx.x%32/IN_ROW*2):(int)(threadIdx.x%4);\n}\n__device__ inline int row_of_lane(){\n"
"return(int)(threadIdx.x%32/OF_ROWS%8);\n}\n\n\ntemplate<class T>struct Read{\nWords<T,SPREAD?2:RUN>at[SPREAD?RUN/2:1];\n};\ntemplate<class T>__device__ inline Read<T>read(const T*from,int valid){\nRead<T>read={};\nif constexpr(SPREAD){\n#pragma unroll\nfor(int i=0;i<RUN;i +=2)\n"
"if(ALIGNED&&valid>place(i + 1))\nread.at[i/2]= *reinterpret_cast<const Words<T,2> *>(from + place(i));\nelse if(!(ALIGNED&&WHOLE))\nread.at[i/2]=words_of(read_elements<2>(from + place(i),valid - place(i)));\n}else{\nread.at[0]=read_run<ALIGNED>(from,valid);\n}\nreturn read;\n}\n"
"template<class T>__device__ inline void to_accs(const Read<T> &read,Acc(&values)[RUN]){\nif constexpr(SPREAD){\n#pragma unroll\nfor(int i=0;i<RUN;i +=2){\nAcc two[2];\nwords_to_acc(read.at[i/2],two);\nvalues[i]=two[0];\nvalues[i + 1]=two[1];\n}\n}else{\nrun_to_acc(run_of(read.at[0]),values);\n}\n"
"}\n\ntemplate<class T>__device__ inline void store_at(T*to,int valid,const Acc(&values)[RUN]){\nif constexpr(SPREAD){\nRun<T>run=run_from_acc<T>(values);\n#pragma unroll\nfor(int i=0;i<RUN;i +=2){\nRun<T,2>pair={run.at[i],run.at[i + 1]};\nif(ALIGNED&&valid>place(i + 1)){\n"
"*reinterpret_cast<Words<T,2> *>(to + place(i))=words_of(pair);\n}else{\nif(valid>place(i))\nto[place(i)]=pair.at[0];\nif(valid>place(i + 1))\nto[place(i + 1)]=pair.at[1];\n}\n}\n}else{\nstore_run<ALIGNED>(to,valid,values);\n}\n}\n\ntemplate<class T>\n"
"__device__ inline void load(const gemmepi__kernel_matrix&x,long long item,long long row,long long column,int valid,\nAcc(&values)[RUN]){\nto_accs(read((const T*)x.data + offset(x,item,row,column),valid),values);\n}\n\n\n"
"__device__ inline void keep_largest_of_run(const Acc(&v)[RUN],int valid,Magnitude&largest){\nAcc existing[RUN];\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nexisting[i]=place(i)<valid?v[i]:Acc(0);\nkeep_largest(existing,RUN,largest);\n}\n\n\n\nstruct Saved{\n"
"Read<GEMMEPI_AUX_TYPE>runs[HALVES_SAVED];\nu32 mask;\n};\n\n\nconstexpr bool LOOKS_NEAR=\nLOADS_AUX&&sizeof(GEMMEPI_AUX_TYPE)==2&&HAS_NEAR_DERIVATIVE<ACTIVATION> &&SAME<Acc,F32> && !GATED&& !UPSTREAM&& !HAS_RESIDUAL&& !SCALES_AUX;\n\ntemplate<class T>__device__ inline u32 pair_of(float x){\n"
"u32 bits=__float_as_uint(x),of_f16=(bits>>16&0x8000)|(((bits&0x7fffffff)>>13)-(112<<10));\nreturn(SAME<T,BF16> ?bits>>16:of_f16)*0x10001u;\n}\n\n\nconstexpr bool NEAR_ENDS=HAS_NEAR_END<ACTIVATION> &&SAME<GEMMEPI_AUX_TYPE,BF16>;\nstruct Near{\n"
"u32 low=pair_of<GEMMEPI_AUX_TYPE>(NEAR<ACTIVATION>),high=pair_of<GEMMEPI_AUX_TYPE>(NEAR_END);\n\n__device__ inline void take_in(const Read<GEMMEPI_AUX_TYPE> &read){\nu32 words[4];\nmemcpy(words,&read,sizeof words);\n#pragma unroll\nfor(int i=0;i<4;i +=2){\n"
"asm(\"{\\n.reg .b32 most;\\nmax.u16x2 most, %0, %1;\\nmax.u16x2 %0, most, %2;\\n}\"\n: \"+r\"(low)\n: \"r\"(words[i]),\"r\"(words[i + 1]));\nif(NEAR_ENDS)\nasm(\"{\\n.reg .b32 most;\\nmax.s16x2 most, %0, %1;\\nmax.s16x2 %0, most, %2;\\n}\"\n: \"+r\"(high)\n"
": \"r\"(words[i]),\"r\"(words[i + 1]));\n}\n}\n__device__ inline bool has_all()const{\nNear none;\nreturn low==none.low&&high==none.high;\n}\n};\n\n\nstruct Of_columns{\nRead<GEMMEPI_BIAS_TYPE>bias[HALVES_IN];\n};\n"
"__device__ inline Of_columns load_columns(const gemmepi__epilogue_params&p,long long item,long long column,int valid){\nOf_columns of;\nif(HAS_BIAS)\n#pragma unroll\nfor(int half=0;half<HALVES_IN;half++)\nof.bias[half]=\n"
"read((const GEMMEPI_BIAS_TYPE*)p.bias.data + offset(p.bias,item,0,column + half*p.n),valid);\n",
"return of;\n}\n",
    NULL};

static const char *const gemmepi__source_epilogue_mask_cuh[] = {
"#line 1 \"src/kernels/epilogue_mask.cuh\"\n\n#pragma once\n#include \"epilogue_fragment.cuh\"\n\n\n\n__device__ inline void store_mask_byte(u8*byte,u32 bits,int valid){\nu32 mine=(1u<<valid)- 1;\n*byte=valid==RUN?(u8)bits:(u8)((*byte& ~mine)|(bits&mine));\n}\n"
"__device__ inline u32 mask_of_run(const Acc(&v)[RUN]){\nu32 bits=0;\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nbits|=(u32)(v[i]>0)<<place(i);\nreturn bits;\n}\n\n__device__ inline u32 mask_of_row(const Acc(&v)[RUN]){\nu32 bits=mask_of_run(v)<<2*lane_of_row();\n"
"bits|=__shfl_xor_sync(0xffffffffu,bits,1);\nreturn bits|__shfl_xor_sync(0xffffffffu,bits,IN_ROW);\n}\n__device__ inline void store_mask(const gemmepi__kernel_matrix&x,long long item,long long row,long long column,\nint valid,const Acc(&v)[RUN]){\nu32 bits;\nif(SPREAD){\nint lane=lane_of_row();\n"
"bits=mask_of_row(v)>>8*lane&0xff;\ncolumn +=6*lane;\nvalid=existing(valid - 6*lane);\nif(valid<=0)\nreturn;\n}else{\nbits=mask_of_run(v);\n}\nstore_mask_byte((u8*)x.data + offset(x,item,row,column)/8,bits,valid);\n}\n\n\n"
"__device__ inline u32 load_spread_mask(const gemmepi__epilogue_params&p,long long item,long long row,long long column,\nint valid){\nint lane=lane_of_row();\nu32 byte=0;\nif(valid>6*lane)\nbyte=((const u8*)p.aux.data)[offset(p.aux,item,row,column + 6*lane)/8];\nu32 bits=byte<<8*lane;\n"
"bits|=__shfl_xor_sync(0xffffffffu,bits,1);\nbits|=__shfl_xor_sync(0xffffffffu,bits,IN_ROW);\nreturn bits>>2*lane;\n}\n\n\n__device__ inline void keep_mask(Epilogue_state&state,const Acc(&v)[RUN]){\nu32 bits=mask_of_row(v);\nif(lane_of_row()==state.mask_place)\nstate.kept_mask=bits;\n}\n\n"
"__device__ inline void store_kept_masks(const gemmepi__epilogue_params&p,const Epilogue_state&state,long long item,\nint row,int column,int groups){\nint group=lane_of_row()/2;\nrow +=lane_of_row()%2*8 + row_of_lane();\ncolumn +=group*32;\nif(group>=groups||row>=(int)p.m)\nreturn;\n"
"u8*bytes=(u8*)p.aux.data + offset(p.aux,item,row,column)/8;\nif(column + 32<=(int)p.n)\n*reinterpret_cast<u32*>(bytes)=state.kept_mask;\nelse\nfor(int i=0;column + i*RUN<(int)p.n;i++)\nstore_mask_byte(bytes + i,state.kept_mask>>i*RUN&0xff,existing((int)p.n - column - i*RUN));\n}\n",
    NULL};

static const char *const gemmepi__source_epilogue_parameters_cuh[] = {
"#line 1 \"src/kernels/epilogue_parameters.cuh\"\n\n#pragma once\n#include \"types.cuh\"\n#include \"activation.cuh\"\n#include \"amax.cuh\"\n#include \"params.h\"\n\n\n#ifndef GEMMEPI_EPILOGUE\n#define GEMMEPI_EPILOGUE     0\n#define GEMMEPI_ACC          F32\n#define GEMMEPI_C_TYPE       F32\n"
"#define GEMMEPI_D_TYPE       F32\n#define GEMMEPI_BIAS_TYPE    F32\n#define GEMMEPI_AUX_TYPE     F32\n#define GEMMEPI_RESIDUAL_TYPE F32\n#define GEMMEPI_ALIGNED      0\n#define GEMMEPI_SCALE_A      0\n#define GEMMEPI_SCALE_B      0\n#define GEMMEPI_SCALES       0\n#define GEMMEPI_AMAX         0\n"
"#define GEMMEPI_STORES_D     1\n#endif\n#ifndef GEMMEPI_APPLIED\n#define GEMMEPI_APPLIED 0\n#endif\n#ifndef GEMMEPI_WHOLE\n#define GEMMEPI_WHOLE 0\n#endif\n#ifndef GEMMEPI_SPREAD\n#define GEMMEPI_SPREAD 0\n#endif\n#ifndef GEMMEPI_APART\n#define GEMMEPI_APART 0\n#endif\n"
"#ifndef GEMMEPI_BIAS_FIRST\n#define GEMMEPI_BIAS_FIRST 0\n#endif\n#ifndef GEMMEPI_LOADED\n#define GEMMEPI_LOADED 0\n#endif\n#ifndef GEMMEPI_MASK_WORDS\n#define GEMMEPI_MASK_WORDS 0\n#endif\n#ifndef GEMMEPI_STAGES_WORDS\n#define GEMMEPI_STAGES_WORDS 0\n#endif\n#ifndef GEMMEPI_STAGED\n"
"#define GEMMEPI_STAGED 0\n#endif\n#ifndef GEMMEPI_COPIED\n#define GEMMEPI_COPIED 0\n#endif\n\ntypedef GEMMEPI_ACC Acc;\n\nconstexpr bool HAS_BIAS=(GEMMEPI_EPILOGUE&FLAG_BIAS)!=0,BIAS_FIRST=HAS_BIAS&&GEMMEPI_BIAS_FIRST;\nconstexpr bool WRITES_AUX=(GEMMEPI_EPILOGUE&FLAG_AUX)!=0;\n"
"constexpr bool BACKWARD=(GEMMEPI_EPILOGUE&FLAG_BACKWARD)!=0;\nconstexpr bool HAS_RESIDUAL=(GEMMEPI_EPILOGUE&FLAG_RESIDUAL)!=0;\nconstexpr bool HAS_BGRAD=(GEMMEPI_EPILOGUE&FLAG_BGRAD)!=0;\nconstexpr bool GATED=(GEMMEPI_EPILOGUE&FLAG_GATED)!=0;\n"
"constexpr bool GATE_FIRST=(GEMMEPI_EPILOGUE&FLAG_GATE_FIRST)!=0;\nconstexpr bool UPSTREAM=(GEMMEPI_EPILOGUE&FLAG_UPSTREAM)!=0;\nconstexpr int ACTIVATION=GEMMEPI_EPILOGUE&0xff;\nconstexpr int HALVES=GATED?2:1,VALUE=GATE_FIRST?1:0,GATE=1 - VALUE;\n"
"constexpr int HALVES_IN=GATED&&(!BACKWARD||UPSTREAM)?2:1;\nconstexpr int HALVES_OUT=GATED&&BACKWARD?2:1;\nconstexpr int HALVES_SAVED=GATED&& !UPSTREAM?2:1;\nconstexpr bool AUX_IS_MASK=SAVES_MASK<ACTIVATION> && !GATED&& !UPSTREAM;\nconstexpr bool ALIGNED=GEMMEPI_ALIGNED;\n"
"constexpr bool WHOLE=GEMMEPI_WHOLE;\nconstexpr bool SPREAD=GEMMEPI_SPREAD,APART=GEMMEPI_APART;\nconstexpr bool STAGES_D=(GEMMEPI_STAGED&1)!=0;\nconstexpr bool LOADS_AUX=(GEMMEPI_LOADED&1)!=0&&BACKWARD&& !AUX_IS_MASK;\nconstexpr bool LOADS_MASK=(GEMMEPI_LOADED&4)!=0&&BACKWARD&&AUX_IS_MASK;\n"
"constexpr bool LOADS_RESIDUAL=(GEMMEPI_LOADED&2)!=0&&HAS_RESIDUAL;\nconstexpr bool STAGES_AUX=(GEMMEPI_STAGED&2)!=0&&WRITES_AUX&& !AUX_IS_MASK;\nconstexpr bool COPIES_D=(GEMMEPI_COPIED&1)!=0,COPIES_AUX=(GEMMEPI_COPIED&2)!=0;\n"
"constexpr bool KEEPS_MASK=SPREAD&&GEMMEPI_MASK_WORDS&&WRITES_AUX&&AUX_IS_MASK;\nconstexpr bool SCALES_C=(GEMMEPI_SCALES&1)!=0;\nconstexpr bool SCALES_D=(GEMMEPI_SCALES&2)!=0;\nconstexpr bool SCALES_AUX=(GEMMEPI_SCALES&4)!=0&& !AUX_IS_MASK;\nconstexpr bool SCALES_RESIDUAL=(GEMMEPI_SCALES&8)!=0;\n"
"constexpr bool AMAX_D=(GEMMEPI_AMAX&1)!=0;\nconstexpr bool AMAX_AUX=(GEMMEPI_AMAX&2)!=0&&WRITES_AUX&& !AUX_IS_MASK;\n\ntypedef decltype(magnitude(Acc()))Magnitude;\n\n\nstruct Epilogue_state{\nAcc alpha,beta;\nAcc scale_c,scale_d,scale_aux,scale_residual;\nAcc column_factors[HALVES_IN][RUN];\n"
"Magnitude largest_d,largest_aux;\nu32 staged_d[HALVES_OUT],staged_aux[HALVES_IN];\nu32 loaded_aux[HALVES_SAVED],loaded_residual[HALVES_OUT];\nu32 loaded_mask;\nu32 kept_mask;\nint mask_place;\n};\n",
    NULL};

static const char *const gemmepi__source_epilogue_staging_cuh[] = {
"#line 1 \"src/kernels/epilogue_staging.cuh\"\n\n#pragma once\n#include \"epilogue_formula.cuh\"\n#include \"epilogue_fragment.cuh\"\n\n\n\n\ntemplate<class T>__device__ inline void stage_run(u32 to,const Acc(&values)[RUN]){\n"
"static_assert(sizeof(T)==2||sizeof(T)==4,\"pairs are of one or two words\");\nWords<T>words=words_of(run_from_acc<T>(values));\nif constexpr(sizeof(T)==4){\n#pragma unroll\nfor(int i=0;i<4;i++)\nasm volatile(\"st.shared.v2.b32 [%0], {%1, %2};\" ::\"r\"(to ^(u32)i<<5),\"r\"(words.at[2*i]),\n"
"\"r\"(words.at[2*i + 1])\n: \"memory\");\n}else{\n#if GEMMEPI_STAGES_WORDS\n#pragma unroll\nfor(int i=0;i<4;i++)\nasm volatile(\"st.shared.b32 [%0], %1;\" ::\"r\"(to ^(u32)i<<4),\"r\"(words.at[i]): \"memory\");\n#else\n"
"asm volatile(\"stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\" ::\"r\"(to),\"r\"(words.at[0]),\n\"r\"(words.at[1]),\"r\"(words.at[2]),\"r\"(words.at[3])\n: \"memory\");\n#endif\n}\n}\n\n\n__device__ inline void store_word_if(bool does,u64 to,u32 bits){\n"
"asm volatile(\"{\\n.reg .pred does;\\nsetp.ne.u32 does, %2, 0;\\n@does st.global.b32 [%0], %1;\\n}\" ::\"l\"(to),\"r\"(bits),\"r\"((u32)does)\n: \"memory\");\n}\n__device__ inline void store_half_if(bool does,u64 to,u32 bits){\n"
"asm volatile(\"{\\n.reg .pred does;\\nsetp.ne.u32 does, %2, 0;\\n@does st.global.b16 [%0], %1;\\n}\" ::\"l\"(to),\"h\"((u16)bits),\n\"r\"((u32)does)\n: \"memory\");\n}\n\n\n\ntemplate<class T,int Columns,bool InWords>\n"
"__device__ inline void copy_box(u32 from,T*to,long long ld,int rows_left,int columns_left){\nconstexpr int per_word=4/sizeof(T),words=InWords?Columns/per_word:Columns/per_word/4;\nconstexpr int at_once=words<32?32/words:1;\nconstexpr int under_way=BACKWARD&&GATED?2:sizeof(T)==4?8:4;\n"
"constexpr int rounds=16/at_once,loaded=rounds<under_way?rounds:under_way;\nint line=(int)threadIdx.x%32/words,word=(int)threadIdx.x%words;\nint left=columns_left<Columns?columns_left:Columns,first=word*(InWords?per_word:4*per_word);\nu64 at=(u64)(to + line*ld),step=(u64)(at_once*ld)*sizeof(T);\n"
"#pragma unroll 1\nfor(int i=0;i<rounds&&i*at_once<rows_left;i +=loaded){\nu32 bits[loaded][InWords?1:4],next[loaded];\n#pragma unroll\nfor(int j=0;j<loaded;j++){\nu32 of_line=from +(line + j*at_once)*128;\nint turn=(line + j*at_once)%8;\nif constexpr(InWords)\n"
"asm volatile(\"ld.shared.b32 %0, [%1];\"\n: \"=r\"(bits[j][0])\n: \"r\"(of_line +((word/4 ^ turn)<<4)+ word%4*4)\n: \"memory\");\nelse\nasm volatile(\"ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];\"\n: \"=r\"(bits[j][0]),\"=r\"(bits[j][1]),\"=r\"(bits[j][2]),\"=r\"(bits[j][3])\n"
": \"r\"(of_line +((word ^ turn)<<4))\n: \"memory\");\n}\nif constexpr(InWords&&per_word==2)\n#pragma unroll\nfor(int j=0;j<loaded;j++)\nnext[j]=__shfl_sync(0xffffffffu,bits[j][0],(int)threadIdx.x%32 + 1);\n#pragma unroll\nfor(int j=0;j<loaded;j++,at +=step){\n"
"int left_here=line + j*at_once<rows_left?left:0;\nif constexpr(!InWords){\nuint4 unit;\nmemcpy(&unit,bits[j],sizeof unit);\nif(first<left_here)\n*reinterpret_cast<uint4*>(at + word*16)=unit;\n}else if constexpr(per_word==1)\nstore_word_if(first<left_here,at + word*4,bits[j][0]);\nelse{\n"
"u32 between=(u32)at>>1&1;\nint left_of_word=left_here - first -(int)between;\nu64 of_word=at + word*4 + between*2;\nu32 here=__byte_perm(bits[j][0],next[j],between?0x5432:0x3210);\nstore_half_if(between&&word==0&&left_here>0,at,bits[j][0]);\nstore_word_if(left_of_word>=2,of_word,here);\n"
"store_half_if(left_of_word==1,of_word,here);\n}\n}\nline +=loaded*at_once;\n}\n}\n\n\ntemplate<class T>__device__ inline Read<T>unstage_run(u32 from){\nstatic_assert(sizeof(T)==2||sizeof(T)==4,\"pairs are of one or two words\");\nu32 words[sizeof(T)*2];\nif constexpr(sizeof(T)==4){\n"
"#pragma unroll\nfor(int i=0;i<4;i++)\nasm volatile(\"ld.shared.v2.b32 {%0, %1}, [%2];\"\n: \"=r\"(words[2*i]),\"=r\"(words[2*i + 1])\n: \"r\"(from ^(u32)i<<5)\n: \"memory\");\n}else{\nasm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\"\n",
": \"=r\"(words[0]),\"=r\"(words[1]),\"=r\"(words[2]),\"=r\"(words[3])\n: \"r\"(from)\n: \"memory\");\n}\nRead<T>read;\nmemcpy(&read,words,sizeof read);\nreturn read;\n}\n\ntemplate<class T,bool Staged>\n"
"__device__ inline void store(const gemmepi__kernel_matrix&x,u32 staged,long long item,long long row,\nlong long column,int valid,const Acc(&values)[RUN]){\nif constexpr(Staged)\nstage_run<T>(staged,values);\nelse\nstore_at((T*)x.data + offset(x,item,row,column),valid,values);\n}\n\n"
"template<class T,bool Staged>\n__device__ inline void store_scaled(const gemmepi__kernel_matrix&x,u32 staged,Acc scale,long long item,\nlong long row,long long column,int valid,const Acc(&values)[RUN]){\nAcc scaled[RUN];\n#pragma unroll\nfor(int i=0;i<RUN;i++)\n"
"scaled[i]=product(values[i],scale);\nstore<T,Staged>(x,staged,item,row,column,valid,scaled);\n}\n",
    NULL};

static const char *const gemmepi__source_gemm_plain_cu[] = {
"#line 1 \"src/kernels/gemm_plain.cu\"\n\n\n\n#include \"epilogue.cuh\"\n\n#ifndef GEMMEPI_A_TYPE\n#define GEMMEPI_A_TYPE       F32\n#define GEMMEPI_B_TYPE       F32\n#define GEMMEPI_A_TRANSPOSED 0\n#define GEMMEPI_B_TRANSPOSED 0\n#define GEMMEPI_A_ALIGNED    0\n#define GEMMEPI_B_ALIGNED    0\n"
"#define GEMMEPI_COMPUTE_TYPE F32\n#define GEMMEPI_CHUNK        0\n#endif\n\ntypedef GEMMEPI_A_TYPE A;\ntypedef GEMMEPI_B_TYPE B;\ntypedef GEMMEPI_COMPUTE_TYPE Compute;\n\ntemplate<bool Condition,class X,class Y>struct Choice{\ntypedef X type;\n};\n"
"template<class X,class Y>struct Choice<false,X,Y>{\ntypedef Y type;\n};\ntemplate<bool Condition,class X,class Y>using Choose=typename Choice<Condition,X,Y>::type;\n\nconstexpr bool TENSOR_CORES=__CUDA_ARCH__>=800&& !SAME<Compute,F32> && !SAME<Compute,F64>;\n"
"typedef Choose<SAME<Compute,I8>,int,Choose<SAME<Compute,F64>,double,float>>Sum;\ntypedef Choose<TENSOR_CORES,Compute,Sum>Staged;\n\nconstexpr int THREADS=128,WARP=32;\nconstexpr int TILE=64;\nconstexpr int GROUP=8;\nconstexpr int GROUPS=TILE/2/GROUP;\n"
"constexpr int LINE_BYTES=128,LINE_PITCH=144;\nconstexpr int PIECE=16;\nconstexpr int STEP=LINE_BYTES/(int)sizeof(Staged);\nconstexpr int RESULT_PITCH=TILE + 8;\nconstexpr int OPERAND_BYTES=TILE*LINE_PITCH;\n"
"constexpr int SHARED_BYTES=TILE*RESULT_PITCH*sizeof(Acc)>4*OPERAND_BYTES?TILE*RESULT_PITCH*sizeof(Acc)\n:4*OPERAND_BYTES;\n\nconstexpr bool A_VARIES=GEMMEPI_SCALE_A==SCALE_VECTOR_128||GEMMEPI_SCALE_A==SCALE_BLOCK_128;\n"
"constexpr bool B_VARIES=GEMMEPI_SCALE_B==SCALE_VECTOR_128||GEMMEPI_SCALE_B==SCALE_BLOCK_128;\nconstexpr bool CHUNKED=GEMMEPI_CHUNK!=0;\nstatic_assert(GEMMEPI_CHUNK%STEP==0,\"a chunk is whole steps\");\n"
"static_assert((!A_VARIES&& !B_VARIES)||GEMMEPI_CHUNK==SCALE_STEPS,\"scales vary from chunk to chunk\");\n\n\nconstexpr bool SPLIT_TOTALS=CHUNKED&&SAME<Sum,int> && !A_VARIES&& !B_VARIES;\ntypedef Choose<SPLIT_TOTALS,int,Acc>Total;\n\n\n\n\n__device__ constexpr int place(int outer,int byte){\n"
"return outer*LINE_PITCH +((byte/PIECE ^ outer/GROUP%4)*PIECE|byte%PIECE);\n}\n\n\n\n\nconstexpr int SINGLE_BYTES=(sizeof(A)==1&& !GEMMEPI_A_ALIGNED)+(sizeof(B)==1&& !GEMMEPI_B_ALIGNED);\nconstexpr bool FETCHES_AHEAD=SINGLE_BYTES*TILE*STEP/THREADS<64;\n\n\n"
"template<class T,bool Transposed,bool Aligned>struct Operand{\nstatic constexpr int PACKED=Transposed&&sizeof(Staged)<4?4/(int)sizeof(Staged):1;\nstatic constexpr int LINE_RUNS=(Transposed?TILE:STEP)/RUN;\nstatic constexpr int LINES=THREADS/LINE_RUNS;\n"
"static constexpr int UNITS=TILE*STEP/RUN/THREADS/PACKED;\n\nWords<T>runs[UNITS][PACKED];\nconst T*from;\nlong long ld;\nint line,run;\n\n__device__ Operand(const gemmepi__kernel_matrix&x,long long item,long long outer){\nld=x.ld;\nline=(int)threadIdx.x/LINE_RUNS*PACKED;\n"
"run=(int)threadIdx.x%LINE_RUNS*RUN;\nfrom=(const T*)x.data + item*x.stride + line*ld + run +(Transposed?outer:outer*ld);\n}\n\n\n__device__ void fetch(int outer_left,int k_left){\nint lines_left=(Transposed?k_left:outer_left)- line;\nint run_left=(Transposed?outer_left:k_left)- run;\n"
"int valid=existing(run_left);\nif(Aligned&&valid==RUN&&lines_left>((UNITS - 1)*LINES + 1)*PACKED - 1)\nfetch_runs<true>(lines_left,valid);\nelse\nfetch_runs<false>(lines_left,valid);\nfrom +=Transposed?STEP*ld:STEP;\n}\n\n\n"
"template<bool Whole>__device__ void fetch_runs(int lines_left,int valid){\n#pragma unroll\nfor(int unit=0;unit<UNITS;unit++)\n#pragma unroll\nfor(int i=0;i<PACKED;i++){\nint next=unit*LINES*PACKED + i;\nruns[unit][i]=read_run<Aligned>(from + next*ld,Whole?RUN:next<lines_left?valid:0);\n}\n}\n\n"
"__device__ void put(u8*shared)const{\n#pragma unroll\nfor(int unit=0;unit<UNITS;unit++){\nint at=line + unit*LINES*PACKED;\nWords<Staged>staged[PACKED];\n#pragma unroll\nfor(int i=0;i<PACKED;i++)\nstaged[i]=convert_run<Staged>(runs[unit][i]);\nif constexpr(Transposed)\n"
"put_across(shared,at,staged);\nelse\nput_along(shared,at,staged[0]);\n}\n}\n\n\n__device__ void put_along(u8*shared,int outer,const Words<Staged> &staged)const{\n",
"constexpr int bytes=sizeof(staged)<PIECE?sizeof(staged):PIECE,words=bytes/sizeof(u32);\nstruct alignas(bytes)Part{\nu32 at[words];\n};\n#pragma unroll\nfor(int i=0;i<(int)sizeof(staged)/bytes;i++){\nPart part;\n#pragma unroll\nfor(int word=0;word<words;word++)\n"
"part.at[word]=staged.at[i*words + word];\n*reinterpret_cast<Part*>(shared + place(outer,run*(int)sizeof(Staged)+ i*bytes))=part;\n}\n}\n\n\n__device__ void put_across(u8*shared,int k,const Words<Staged>(&staged)[PACKED])const{\nstruct alignas(PACKED*sizeof(Staged))Element{\n"
"u32 at[PACKED*sizeof(Staged)/sizeof(u32)];\n};\n#pragma unroll\nfor(int outer=0;outer<RUN;outer++){\nElement element;\nif constexpr(PACKED==1){\nconstexpr int words=sizeof(element)/sizeof(u32);\n#pragma unroll\nfor(int word=0;word<words;word++)\n"
"element.at[word]=staged[0].at[outer*words + word];\n}else if constexpr(PACKED==2){\nelement.at[0]=__byte_perm(staged[0].at[outer/2],staged[1].at[outer/2],\nouter%2?0x7632:0x5410);\n}else{\nconstexpr u32 front=0x5140,back=0x7362;\nu32 pick=outer%4<2?front:back;\n"
"u32 first=__byte_perm(staged[0].at[outer/4],staged[1].at[outer/4],pick);\nu32 second=__byte_perm(staged[2].at[outer/4],staged[3].at[outer/4],pick);\nelement.at[0]=__byte_perm(first,second,outer%2?0x7632:0x5410);\n}\n"
"*reinterpret_cast<Element*>(shared + place(run + outer,k*(int)sizeof(Staged)))=element;\n}\n}\n};\n\n\n\n\n#if __CUDA_ARCH__ >= 800\n__device__ inline void multiply_16(F16,float(&upper)[2],float(&lower)[2],const u32(&a)[4],const u32(&b)[2]){\n"
"asm(\"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 \"\n\"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n: \"+f\"(upper[0]),\"+f\"(upper[1]),\"+f\"(lower[0]),\"+f\"(lower[1])\n: \"r\"(a[0]),\"r\"(a[1]),\"r\"(a[2]),\"r\"(a[3]),\"r\"(b[0]),\"r\"(b[1]));\n}\n"
"__device__ inline void multiply_16(BF16,float(&upper)[2],float(&lower)[2],const u32(&a)[4],const u32(&b)[2]){\nasm(\"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 \"\n\"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n"
": \"+f\"(upper[0]),\"+f\"(upper[1]),\"+f\"(lower[0]),\"+f\"(lower[1])\n: \"r\"(a[0]),\"r\"(a[1]),\"r\"(a[2]),\"r\"(a[3]),\"r\"(b[0]),\"r\"(b[1]));\n}\n__device__ inline void multiply_16(I8,int(&upper)[2],int(&lower)[2],const u32(&a)[4],const u32(&b)[2]){\n"
"asm(\"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 \"\n\"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n: \"+r\"(upper[0]),\"+r\"(upper[1]),\"+r\"(lower[0]),\"+r\"(lower[1])\n: \"r\"(a[0]),\"r\"(a[1]),\"r\"(a[2]),\"r\"(a[3]),\"r\"(b[0]),\"r\"(b[1]));\n}\n#endif\n\n\n"
"template<class T>\n__device__ inline void multiply_fragments(const u8*a,const u8*b,Sum(&sums)[GROUPS][GROUPS][2]){\nint group=threadIdx.x%WARP/4,quarter=threadIdx.x%4;\na +=group*LINE_PITCH + quarter*sizeof(u32);\nb +=group*LINE_PITCH + quarter*sizeof(u32);\n#pragma unroll\n"
"for(int byte=0;byte<LINE_BYTES;byte +=2*PIECE){\nu32 left[GROUPS/2][4],right[GROUPS][2];\n#pragma unroll\nfor(int i=0;i<GROUPS;i++)\n#pragma unroll\nfor(int half=0;half<2;half++){\nint at=place(i*GROUP,byte + half*PIECE);\nleft[i/2][i%2 + 2*half]= *reinterpret_cast<const u32*>(a + at);\n"
"right[i][half]= *reinterpret_cast<const u32*>(b + at);\n}\n#pragma unroll\nfor(int i=0;i<GROUPS;i +=2)\n#pragma unroll\nfor(int j=0;j<GROUPS;j++)\nmultiply_16(T(),sums[i][j],sums[i + 1][j],left[i/2],right[j]);\n}\n}\n\n__device__ inline int multiply_add(int x,int y,int z){\n"
"return sum(product(x,y),z);\n}\n__device__ inline float multiply_add(float x,float y,float z){\nreturn fmaf(x,y,z);\n}\n__device__ inline double multiply_add(double x,double y,double z){\nreturn fma(x,y,z);\n}\n\n\n"
"__device__ inline void multiply_elements(const u8*a,const u8*b,Sum(&sums)[GROUPS][GROUPS][2]){\nconstexpr int count=PIECE/(int)sizeof(Sum);\nstruct alignas(PIECE)Part{\nSum at[count];\n};\nint group=threadIdx.x%WARP/4,quarter=threadIdx.x%4;\na +=group*LINE_PITCH;\nb +=quarter*2*LINE_PITCH;\n"
"#pragma unroll 1\nfor(int half=0;half<2;half++){\n#pragma unroll\n",
"for(int byte=0;byte<LINE_BYTES/2;byte +=PIECE){\nPart left[GROUPS],right[GROUPS][2];\n#pragma unroll\nfor(int i=0;i<GROUPS;i++){\nleft[i]= *reinterpret_cast<const Part*>(a + place(i*GROUP,byte));\n#pragma unroll\nfor(int e=0;e<2;e++)\n"
"right[i][e]= *reinterpret_cast<const Part*>(b + place(i*GROUP + e,byte));\n}\n#pragma unroll\nfor(int k=0;k<count;k++)\n#pragma unroll\nfor(int i=0;i<GROUPS;i++)\n#pragma unroll\nfor(int j=0;j<GROUPS;j++)\n#pragma unroll\nfor(int e=0;e<2;e++)\n"
"sums[i][j][e]=multiply_add(left[i].at[k],right[j][e].at[k],sums[i][j][e]);\n}\na +=LINE_BYTES/2;\nb +=LINE_BYTES/2;\n}\n}\n\n\n\n\ntemplate<int Mode,int Each>struct Chunk_scales{\nconst float*at;\nlong long step;\nlong long left;\nfloat values[GROUPS][Each];\n\n"
"__device__ Chunk_scales(const gemmepi__kernel_scale&scale,long long item,long long first,long long extent,\nlong long k){\n\nlong long outer=first<extent?first:extent - 1;\nScale_line line=scale_line<Mode>(scale.data + item*scale.stride,outer,extent,k);\nat=line.at;\nstep=line.step;\n"
"left=extent - first;\n}\n__device__ void next(){\n#pragma unroll\nfor(int i=0;i<GROUPS;i++)\n#pragma unroll\nfor(int e=0;e<Each;e++){\nint line=i*GROUP + e;\nif(Mode==SCALE_BLOCK_128)\nvalues[i][e]=i + e==0? *at:values[0][0];\nelse\nvalues[i][e]=line<left?at[line]:0;\n}\nat +=step;\n}\n};\n\n"
"template<class T>__device__ inline void add_to_total(T&value,Total&total,float factor){\nif constexpr(SPLIT_TOTALS){\ntotal +=value>>16;\nvalue&=0xffff;\n}else{\ntotal +=(Acc)value*(Acc)factor;\nvalue=0;\n}\n}\n\n\ntemplate<class Left,class Right>\n"
"__device__ inline void add_chunk(const Left&left,const Right&right,Sum(&sums)[GROUPS][GROUPS][2],\nTotal(&totals)[GROUPS][GROUPS][2]){\n#pragma unroll\nfor(int i=0;i<GROUPS;i++)\n#pragma unroll\nfor(int j=0;j<GROUPS;j++)\n#pragma unroll\nfor(int e=0;e<2;e++)\n"
"add_to_total(sums[i][j][e],totals[i][j][e],\n(A_VARIES?left.values[i][0]:1)*(B_VARIES?right.values[j][e]:1));\n}\n\n__device__ inline Acc finished(Sum value,Total total){\nif(SPLIT_TOTALS)\nreturn(Acc)((long long)total*65536 +(long long)value);\nreturn CHUNKED?(Acc)total:(Acc)value;\n}\n\n\n\n"
"template<class Left,class Right>\n__device__ inline void fetch(Left&a,Right&b,int rows,int columns,int k_left){\na.fetch(rows,k_left);\nb.fetch(columns,k_left);\n}\n\ntemplate<class Left,class Right>\n__device__ inline void put(Left&a,Right&b,int rows,int columns,int k_left,u8*shared){\n"
"if(!FETCHES_AHEAD)\na.fetch(rows,k_left);\na.put(shared);\nif(!FETCHES_AHEAD){\n__syncthreads();\nb.fetch(columns,k_left);\n}\nb.put(shared + OPERAND_BYTES);\n}\n\n\nextern \"C\" __global__ void __launch_bounds__(THREADS,2)\ngemmepi_plain(GEMMEPI_PARAMS gemmepi__plain_params params){\n"
"__shared__ alignas(PIECE)u8 shared[SHARED_BYTES];\nconst gemmepi__epilogue_params&p=params.epilogue;\nu32 part=blockIdx.x/p.column_tiles;\nu32 item=part/p.row_tiles;\nlong long tile_row=(long long)(part - item*p.row_tiles)*TILE;\n"
"long long tile_column=(long long)(blockIdx.x - part*p.column_tiles)*TILE;\nint rows=p.m - tile_row<TILE?(int)(p.m - tile_row):TILE;\nint columns=p.n - tile_column<TILE?(int)(p.n - tile_column):TILE;\nint row=(int)threadIdx.x/WARP%2*(TILE/2),column=(int)threadIdx.x/WARP/2*(TILE/2);\n"
"int group=threadIdx.x%WARP/4,quarter=threadIdx.x%4;\n\nSum sums[GROUPS][GROUPS][2]={};\nTotal totals[GROUPS][GROUPS][2]={};\nOperand<A,GEMMEPI_A_TRANSPOSED,GEMMEPI_A_ALIGNED>a(params.a,item,tile_row);\nOperand<B,!GEMMEPI_B_TRANSPOSED,GEMMEPI_B_ALIGNED>b(params.b,item,tile_column);\n"
"Chunk_scales<GEMMEPI_SCALE_A,1>scales_a(p.scale_a,item,tile_row + row + group,p.m,params.k);\nChunk_scales<GEMMEPI_SCALE_B,2>scales_b(p.scale_b,item,tile_column + column + quarter*2,p.n,params.k);\nu8*now=shared,*next=shared + 2*OPERAND_BYTES;\nint k_left=params.k<STEP?(int)params.k:STEP;\n"
"if(FETCHES_AHEAD&&k_left>0)\nfetch(a,b,rows,columns,k_left);\nif(k_left>0)\nput(a,b,rows,columns,k_left,now);\n__syncthreads();\nint chunk_left=0;\nfor(long long left=params.k;left>0;left -=STEP){\n",
"k_left=left - STEP<STEP?(int)(left - STEP):STEP;\nif(FETCHES_AHEAD&&k_left>0)\nfetch(a,b,rows,columns,k_left);\nif(CHUNKED&&chunk_left==0){\nchunk_left=GEMMEPI_CHUNK/STEP;\nif(A_VARIES)\nscales_a.next();\nif(B_VARIES)\nscales_b.next();\n}\nif constexpr(TENSOR_CORES)\n"
"multiply_fragments<Staged>(now + row*LINE_PITCH,now + OPERAND_BYTES + column*LINE_PITCH,sums);\nelse\nmultiply_elements(now + row*LINE_PITCH,now + OPERAND_BYTES + column*LINE_PITCH,sums);\nif(CHUNKED&&(--chunk_left==0||k_left<=0))\nadd_chunk(scales_a,scales_b,sums,totals);\nif(k_left>0)\n"
"put(a,b,rows,columns,k_left,next);\n__syncthreads();\nu8*last=now;\nnow=next;\nnext=last;\n}\n\n\nAcc*results=reinterpret_cast<Acc*>(shared);\n#pragma unroll\nfor(int i=0;i<GROUPS;i++)\n#pragma unroll\nfor(int j=0;j<GROUPS;j++){\n"
"int at=(row + i*GROUP + group)*RESULT_PITCH + column + j*GROUP + quarter*2;\nresults[at]=finished(sums[i][j][0],totals[i][j][0]);\nresults[at + 1]=finished(sums[i][j][1],totals[i][j][1]);\n}\n__syncthreads();\nconstexpr int width=TILE/RUN,height=THREADS/width;\n"
"int x=(int)threadIdx.x%width,y=(int)threadIdx.x/width;\nint valid=existing(columns - x*RUN);\nlong long first=tile_column + x*RUN;\nEpilogue_state state=begin_epilogue(p,item,first,valid);\nAcc column_sums[HALVES_OUT][RUN]={};\n#pragma unroll 1\nfor(int r=y;r<rows&&valid>0;r +=height){\n"
"Acc v[HALVES][RUN];\nSaved saved;\nload_saved(p,state,item,tile_row + r,first,valid,saved);\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nv[0][i]=results[r*RESULT_PITCH + x*RUN + i];\nepilogue(p,state,load_columns(p,item,first,valid),saved,item,tile_row + r,first,valid,v);\n"
"store_result(p,state,item,tile_row + r,first,valid,v);\nif(HAS_BGRAD)\n#pragma unroll\nfor(int i=0;i<RUN;i++)\ncolumn_sums[0][i]=sum(column_sums[0][i],v[0][i]);\n}\nif(HAS_BGRAD)\nstore_partials<THREADS>(p,part,first,valid,x,y,width,column_sums);\nend_epilogue(p,state);\n}\n",
    NULL};

#ifndef GEMMEPI_NO_SM80
static const char *const gemmepi__source_gemm_sm80_cu[] = {
"#line 1 \"src/kernels/gemm_sm80.cu\"\n#line 13\n#define GEMMEPI_SPREAD 1\n#define GEMMEPI_STAGES_WORDS 1\n\n\n#ifdef GEMMEPI_FMA\n#define GEMMEPI_APART GEMMEPI_FMA\n#endif\n#include \"epilogue.cuh\"\n\n#ifndef GEMMEPI_TILE_M\n#define GEMMEPI_TILE_M   128\n#define GEMMEPI_TILE_N   128\n"
"#define GEMMEPI_WARPS_M  4\n#define GEMMEPI_WARPS_N  2\n#define GEMMEPI_STAGES   3\n#define GEMMEPI_BLOCKS   2\n#define GEMMEPI_A_ROWS   1\n#define GEMMEPI_B_ROWS   1\n#define GEMMEPI_A_UNIT   16\n#define GEMMEPI_B_UNIT   16\n#define GEMMEPI_ELEMENT  2\n#define GEMMEPI_OPERANDS \"bf16\"\n"
"#define GEMMEPI_FMA      0\n#define GEMMEPI_SPLIT    0\n#endif\n\n#if GEMMEPI_ELEMENT == 2\ntypedef u16 Element;\n#define GEMMEPI_MMA \"m16n8k16\"\n#else\ntypedef u32 Element;\n#define GEMMEPI_MMA \"m16n8k8\"\n#endif\nconstexpr int ELEMENT=GEMMEPI_ELEMENT,LINE=128;\n"
"constexpr bool SPLIT=GEMMEPI_SPLIT;\nconstexpr bool FMA=GEMMEPI_FMA;\nconstexpr int TILE_M=GEMMEPI_TILE_M,TILE_N=GEMMEPI_TILE_N,TILE_K=LINE/ELEMENT,STAGES=GEMMEPI_STAGES;\nconstexpr int STEPS=4;\nconstexpr int WARPS_M=GEMMEPI_WARPS_M,WARPS_N=GEMMEPI_WARPS_N,THREADS=32*WARPS_M*WARPS_N;\n"
"constexpr int WARP_M=TILE_M/WARPS_M,WARP_N=TILE_N/WARPS_N;\nconstexpr bool A_ROWS=GEMMEPI_A_ROWS,B_ROWS=GEMMEPI_B_ROWS;\nconstexpr int TILE_COLUMNS=TILE_N/HALVES_IN,WARP_COLUMNS=WARP_N/HALVES_IN;\nconstexpr int ROW_BLOCKS=WARP_M/16,PAIRS=WARP_N/16;\nconstexpr int BOX=TILE_K*LINE;\n"
"constexpr u32 A_BYTES=TILE_M*LINE,B_BYTES=TILE_N*LINE,STAGE_BYTES=A_BYTES + B_BYTES;\n\n\nconstexpr bool STAGED=STAGES_D||STAGES_AUX;\nconstexpr bool STAGES_WIDE=(STAGES_D&&sizeof(GEMMEPI_D_TYPE)==4)||(STAGES_AUX&&sizeof(GEMMEPI_AUX_TYPE)==4);\nconstexpr int GROUP=32,GROUPS=WARP_COLUMNS/GROUP;\n"
"constexpr int BOX_GROUPS=GROUPS%2||STAGES_WIDE?1:2,BOX_COLUMNS=BOX_GROUPS*GROUP;\nconstexpr int STAGED_D=STAGES_D?HALVES_OUT:0,STAGED_MATRICES=STAGED_D +(STAGES_AUX?HALVES_IN:0);\nconstexpr int STAGED_BYTES=16*LINE;\n"
"static_assert(WARP_M%16==0&&WARP_COLUMNS%GROUP==0,\"a warp has whole runs of both halves\");\nstatic_assert(TILE_COLUMNS%TILE_K==0||B_ROWS||HALVES_IN==1,\"lines along n are of one half\");\n"
"static_assert(THREADS/32*STAGED_MATRICES*STAGED_BYTES<=STAGES*STAGE_BYTES,\"results lie where the stages were\");\n\n\n\ntemplate<int Unit>__device__ inline void copy_whole(u32 to,const void*from){\nif constexpr(Unit==16)\n"
"asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\" ::\"r\"(to),\"l\"(from): \"memory\");\nelse\nasm volatile(\"cp.async.ca.shared.global [%0], [%1], %2;\" ::\"r\"(to),\"l\"(from),\"n\"(Unit): \"memory\");\n}\n\n"
"template<int Unit>__device__ inline void copy_some(u32 to,const void*from,int bytes){\nif constexpr(Unit==16)\nasm volatile(\"cp.async.cg.shared.global [%0], [%1], 16, %2;\" ::\"r\"(to),\"l\"(from),\"r\"(bytes): \"memory\");\nelse\n"
"asm volatile(\"cp.async.ca.shared.global [%0], [%1], %3, %2;\" ::\"r\"(to),\"l\"(from),\"r\"(bytes),\"n\"(Unit)\n: \"memory\");\n}\n__device__ inline void copies_commit(){\nasm volatile(\"cp.async.commit_group;\" ::: \"memory\");\n}\ntemplate<int Left>__device__ inline void copies_wait(){\n"
"asm volatile(\"cp.async.wait_group %0;\" ::\"n\"(Left): \"memory\");\n}\ntemplate<bool Turned>__device__ inline void load_matrices(u32 from,u32(&to)[4]){\nif constexpr(Turned)\nasm volatile(\"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\"\n"
": \"=r\"(to[0]),\"=r\"(to[1]),\"=r\"(to[2]),\"=r\"(to[3])\n: \"r\"(from)\n: \"memory\");\nelse\nasm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\"\n: \"=r\"(to[0]),\"=r\"(to[1]),\"=r\"(to[2]),\"=r\"(to[3])\n: \"r\"(from)\n: \"memory\");\n}\n"
"__device__ inline void load_words(u32 from,u32&to){\nasm volatile(\"ld.shared.b32 %0, [%1];\" : \"=r\"(to): \"r\"(from): \"memory\");\n}\n__device__ inline void load_words(u32 from,float&to0,float&to1){\n"
"asm volatile(\"ld.shared.v2.f32 {%0, %1}, [%2];\" : \"=f\"(to0),\"=f\"(to1): \"r\"(from): \"memory\");\n}\n__device__ inline void load_words(u32 from,float(&to)[4]){\n",
"asm volatile(\"ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\"\n: \"=f\"(to[0]),\"=f\"(to[1]),\"=f\"(to[2]),\"=f\"(to[3])\n: \"r\"(from)\n: \"memory\");\n}\n#if !GEMMEPI_FMA\n\n__device__ inline void multiply(float(&sums)[4],const u32(&a)[4],u32 b0,u32 b1){\n"
"asm volatile(\"mma.sync.aligned.\" GEMMEPI_MMA \".row.col.f32.\" GEMMEPI_OPERANDS \".\" GEMMEPI_OPERANDS \".f32 \"\n\"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n: \"+f\"(sums[0]),\"+f\"(sums[1]),\"+f\"(sums[2]),\"+f\"(sums[3])\n"
": \"r\"(a[0]),\"r\"(a[1]),\"r\"(a[2]),\"r\"(a[3]),\"r\"(b0),\"r\"(b1));\n}\n#endif\n\n\n\n\ntemplate<bool Rows>__device__ constexpr int turn_of(int line){\nreturn Rows||ELEMENT==2?line%8:line%4*2;\n}\n\n\n\n\ntemplate<bool Rows,int Lines,int Unit,int Halves>struct Loader{\n"
"static constexpr int PIECE=Unit==2?16:Unit,PIECES=LINE/PIECE,ELEMENTS=PIECE/ELEMENT;\nstatic constexpr int STEP=THREADS/PIECES,COUNT=Lines/STEP;\nstatic constexpr int PART=(COUNT + 3)/4;\nstatic_assert(TILE_K%STEP==0&&Lines/Halves%STEP==0,\"all threads copy as much\");\nconst Element*from,*at;\n"
"long long ld,apart;\nint exist;\nbool inside;\nu32 to;\nElement held[Unit==2?PART*ELEMENTS:1];\n\n\n__device__ inline Loader(const gemmepi__kernel_matrix&x,long long item,long long first,long long extent,\nlong long first_k){\n"
"int line=(int)threadIdx.x/PIECES,piece=(int)threadIdx.x%PIECES,unit=piece*PIECE/16;\nld=x.ld;\napart=extent;\nfrom=(const Element*)x.data + item*x.stride +\n(Rows?(first + line)*ld + first_k + piece*ELEMENTS:(first_k + line)*ld + first + piece*ELEMENTS);\n"
"long long left=extent - first -(Rows?line:piece*ELEMENTS);\nexist=left<Lines?(int)left:Lines;\ninside=first + Lines/Halves<=extent;\nto=line*LINE +((unit ^ turn_of<Rows>(line))<<4)+ piece*PIECE%16;\n}\n\n\n__device__ inline int go_to(int i,int k_left){\n"
"constexpr int of_half=Lines/Halves,of_run=Rows?of_half:TILE_K;\nint line=i*STEP,half=line/of_half,within=line%of_half;\nint piece_k=(int)threadIdx.x%PIECES*ELEMENTS,line_k=(int)threadIdx.x/PIECES;\nif(line%of_run)\nat +=STEP*ld;\nelse\n"
"at=from +(Rows?half*apart*ld:within/TILE_K*TILE_K + half*apart);\nasm volatile(\"\" : \"+l\"(at),\"+r\"(exist));\nif(Rows)\nreturn within<exist?k_left - piece_k:0;\nreturn line_k + line%TILE_K<k_left?exist - within/TILE_K*TILE_K:0;\n}\n__device__ inline u32 place_of(u32 stage,int i)const{\n"
"return((stage + to)^(u32)(turn_of<Rows>(i*STEP)<<4))+ i*STEP*LINE;\n}\n\ntemplate<bool Whole>__device__ inline void fetch_part(u32 stage,int part,int k_left){\n#pragma unroll\nfor(int p=0;p<PART;p++){\nint i=part*PART + p;\nif(i>=COUNT)\nbreak;\nint valid=go_to(i,k_left);\n"
"if constexpr(Unit==2){\n#pragma unroll\nfor(int j=0;j<ELEMENTS;j++)\nheld[p*ELEMENTS + j]=Whole||j<valid?at[j]:(Element)0;\n}else if(Whole)\ncopy_whole<Unit>(place_of(stage,i),at);\nelse\ncopy_some<Unit>(place_of(stage,i),at,valid<=0?0:valid>=ELEMENTS?PIECE:valid*ELEMENT);\n}\n}\n"
"__device__ inline void fetch(u32 stage,int part,int k_left){\nif(inside&&k_left>=TILE_K)\nfetch_part<true>(stage,part,k_left);\nelse\nfetch_part<false>(stage,part,k_left);\n}\n\n__device__ inline void put(u32 stage,int part)const{\nif constexpr(Unit==2){\n#pragma unroll\n"
"for(int p=0;p<PART;p++){\nu32 words[4];\nmemcpy(words,held + p*ELEMENTS,sizeof words);\nasm volatile(\"st.shared.v4.b32 [%0], {%1, %2, %3, %4};\" ::\"r\"(place_of(stage,part*PART + p)),\"r\"(words[0]),\n\"r\"(words[1]),\"r\"(words[2]),\"r\"(words[3])\n: \"memory\");\n}\n}\n}\n\n"
"__device__ inline void next(){\nfrom +=Rows?TILE_K:TILE_K*ld;\nasm volatile(\"\" : \"+l\"(ld));\n}\n};\n\n\n\n\n\ntemplate<bool Rows>__device__ inline u32 fragment_lane(int first,int outer,int k){\nint lane=threadIdx.x%8,word=threadIdx.x%32/4,line=threadIdx.x%4;\nif(!Rows&&ELEMENT==4)\n"
"return(u32)(first/TILE_K*BOX + line*LINE +((first%TILE_K/4 + word/4 ^ turn_of<Rows>(line))<<4)+ word%4*4);\nreturn Rows?(u32)((first + outer*8 + lane)*LINE +((k ^ lane)<<4))\n:(u32)(first/TILE_K*BOX +(k*8 + lane)*LINE +((first%TILE_K/8 ^ outer ^ lane)<<4));\n}\n\n",
"template<bool Rows>__device__ inline u32 fragment_at(u32 lane,int i,int step){\nconstexpr int sixteens=TILE_K/16,units=16*ELEMENT/16;\nreturn Rows?(lane ^(u32)step<<5)+ i*16*LINE\n:(lane ^(u32)(i%sixteens*units)<<4)+ i/sixteens*BOX + step*(TILE_K/STEPS)*LINE;\n}\n\n"
"template<bool Rows,bool KInner>__device__ inline void load_fragment(u32 from,u32(&to)[4]){\nif constexpr(Rows||ELEMENT==2)\nload_matrices<!Rows>(from,to);\nelse\n#pragma unroll\nfor(int i=0;i<4;i++){\nint outer=KInner?i/2:i%2,k=KInner?i%2:i/2;\nload_words((from ^(u32)outer<<5)+ k*4*LINE,to[i]);\n"
"}\n}\n\nstruct Fragments{\nu32 a[ROW_BLOCKS][4],b[PAIRS][4];\n};\n\n__device__ inline void load_fragments(u32 a,u32 b,int step,Fragments&fragments){\nconstexpr int of_half=PAIRS/HALVES_IN;\n#pragma unroll\nfor(int i=0;i<ROW_BLOCKS;i++)\n"
"load_fragment<A_ROWS,false>(fragment_at<A_ROWS>(a,i,step),fragments.a[i]);\n#pragma unroll\nfor(int i=0;i<PAIRS;i++)\nload_fragment<B_ROWS,true>(fragment_at<B_ROWS>(b,i%of_half,step)+ i/of_half*TILE_COLUMNS*LINE,\nfragments.b[i]);\n}\n\n"
"__device__ inline void multiply_fragments(const Fragments&fragments,float(&sums)[ROW_BLOCKS][PAIRS*2][4]){\n#if !GEMMEPI_FMA\n#pragma unroll\nfor(int i=0;i<ROW_BLOCKS;i++)\n#pragma unroll\nfor(int j=0;j<PAIRS*2;j++)\n"
"multiply(sums[i][j],fragments.a[i],fragments.b[j/2][j%2*2],fragments.b[j/2][j%2*2 + 1]);\n#endif\n}\n\n\n\n\ntemplate<bool Rows>__device__ inline u32 value_lane(int first,int at){\nreturn Rows?(u32)((first + at)*LINE +(at%8<<4)):(u32)(first/TILE_K*BOX + first%TILE_K*ELEMENT +(at/4<<4)+ at%4*4);\n"
"}\n\ntemplate<bool Rows>__device__ inline u32 value_at(u32 lane,int i,int four){\nreturn Rows?(lane ^(u32)four<<4)+ i*8*LINE:(lane ^(u32)(i%4)<<5)+ i/4*BOX + four*4*LINE;\n}\n\n__device__ inline u32 line_at(u32 from,int k){\nreturn(from ^(u32)turn_of<false>(k)<<4)+ k*LINE;\n}\n\n"
"__device__ inline void load_a_values(u32 from,float(&to)[4]){\nif constexpr(A_ROWS)\nload_words(from,to);\nelse\n#pragma unroll\nfor(int k=0;k<4;k++){\nu32 word;\nload_words(line_at(from,k),word);\nto[k]=__uint_as_float(word);\n}\n}\n"
"__device__ inline void load_b_values(u32 from,float(&to)[2][4]){\nif constexpr(B_ROWS){\nload_words(from,to[0]);\nload_words((from ^ 16)+ LINE,to[1]);\n}else{\n#pragma unroll\nfor(int k=0;k<4;k++)\nload_words(line_at(from,k),to[0][k],to[1][k]);\n}\n}\n\n\n"
"__device__ inline void multiply_add(u32 a,u32 b,int step,float(&sums)[ROW_BLOCKS][PAIRS*2][4]){\nconstexpr int of_half=PAIRS*2/HALVES_IN;\n#pragma unroll\nfor(int four=step*2;four<step*2 + 2;four++){\nfloat rows[ROW_BLOCKS*2][4];\n#pragma unroll\nfor(int i=0;i<ROW_BLOCKS*2;i++)\n"
"load_a_values(value_at<A_ROWS>(a,i,four),rows[i]);\n#pragma unroll\nfor(int j=0;j<PAIRS*2;j++){\nfloat columns[2][4];\nload_b_values(value_at<B_ROWS>(b,j%of_half,four)+ j/of_half*TILE_COLUMNS*LINE,columns);\n#pragma unroll\nfor(int k=0;k<4;k++)\n#pragma unroll\nfor(int i=0;i<ROW_BLOCKS*4;i++){\n"
"float&sum=sums[i/4][j][i%4];\nsum=__fmaf_rn(rows[i/2][k],columns[i%2][k],sum);\n}\n}\n}\n}\n\n__device__ inline void take_sums(const float(&from)[ROW_BLOCKS][PAIRS*2][4],float(&sums)[ROW_BLOCKS][PAIRS*2][4]){\n#pragma unroll\nfor(int i=0;i<ROW_BLOCKS*PAIRS*8;i++)\n"
"sums[i/(PAIRS*8)][i/4%(PAIRS*2)][i%4]+=from[i/(PAIRS*8)][i/4%(PAIRS*2)][i%4];\n}\n\n\n\n\ntemplate<class T>__device__ inline u32 place_in_box(int half,int g){\nint row=row_of_lane(),unit=sizeof(T)==4?lane_of_row()/2:g*4;\n"
"return(half*8 + row)*LINE +((unit ^ row)<<4)+(sizeof(T)==4?lane_of_row()%2*8:lane_of_row()*4);\n}\n\n\n__device__ inline void finish(const gemmepi__epilogue_params&p,long long item,int row,int column,long long line,\nu32 staged,const float(&sums)[ROW_BLOCKS][PAIRS*2][4]){\n"
"int of_row=row_of_lane();\nEpilogue_state state=begin_epilogue(p,item,0,0);\n#pragma unroll\nfor(int box=0;box<GROUPS;box +=BOX_GROUPS){\nOf_columns of[BOX_GROUPS];\nColumn_sums<(ROW_BLOCKS>2)>column_sums[BOX_GROUPS];\nint box_column=column + box*GROUP,box_left=(int)p.n - box_column;\n",
"int first=box_column + lane_of_row()*2,left=box_left - lane_of_row()*2;\n#pragma unroll\nfor(int g=0;g<BOX_GROUPS;g++)\nof[g]=load_columns(p,item,first + g*GROUP,left - g*GROUP);\n#pragma unroll\nfor(int i=0;i<ROW_BLOCKS;i++){\n#pragma unroll\nfor(int g=0;g<BOX_GROUPS;g++){\n#pragma unroll\n"
"for(int half=0;half<2;half++){\nint at=row + i*16 + half*8 + of_row,exists=at<(int)p.m;\nint valid=exists?left - g*GROUP:0;\nAcc v[HALVES][RUN];\nSaved saved;\n#pragma unroll\nfor(int j=0;j<HALVES_IN*RUN;j++)\nv[j/RUN][j%RUN]=\nsums[i][j/RUN*WARP_COLUMNS/8 +(box + g)*4 + j%RUN/2][half*2 + j%2];\n"
"#pragma unroll\nfor(int j=0;j<STAGED_D;j++)\nstate.staged_d[j]=staged + j*STAGED_BYTES + place_in_box<GEMMEPI_D_TYPE>(half,g);\n#pragma unroll\nfor(int j=0;j<STAGED_MATRICES - STAGED_D;j++)\nstate.staged_aux[j]=staged +(STAGED_D + j)*STAGED_BYTES + place_in_box<GEMMEPI_AUX_TYPE>(half,g);\n"
"state.mask_place=half + 2*g;\nload_saved(p,state,item,at,first + g*GROUP,valid,saved);\nepilogue(p,state,of[g],saved,item,at,first + g*GROUP,valid,v);\nstore_result(p,state,item,at,first + g*GROUP,valid,v);\nif(HAS_BGRAD)\ncolumn_sums[g].add(v,exists);\n}\nif(HAS_BGRAD)\n"
"column_sums[g].end_rows();\n}\nif(KEEPS_MASK)\nstore_kept_masks(p,state,item,row + i*16,box_column,BOX_GROUPS);\nif(STAGED){\nint rows_left=(int)p.m - row - i*16;\n__syncwarp();\n#pragma unroll\nfor(int j=0;j<STAGED_D;j++)\ncopy_box<GEMMEPI_D_TYPE,BOX_COLUMNS,COPIES_D>(\n"
"staged + j*STAGED_BYTES,\n(GEMMEPI_D_TYPE*)p.d.data + offset(p.d,item,row + i*16,box_column + j*p.n),p.d.ld,rows_left,\nbox_left);\n#pragma unroll\nfor(int j=0;j<STAGED_MATRICES - STAGED_D;j++)\ncopy_box<GEMMEPI_AUX_TYPE,BOX_COLUMNS,COPIES_AUX>(\nstaged +(STAGED_D + j)*STAGED_BYTES,\n"
"(GEMMEPI_AUX_TYPE*)p.aux.data + offset(p.aux,item,row + i*16,box_column + j*p.n),p.aux.ld,\nrows_left,box_left);\n__syncwarp();\n}\n}\nif(HAS_BGRAD&&row<(int)p.m)\n#pragma unroll\nfor(int g=0;g<BOX_GROUPS;g++)\ncolumn_sums[g].store(p,line,box_column + g*GROUP);\n}\nend_epilogue(p,state);\n"
"}\n\n\n\n\n\nextern \"C\" __global__ void __launch_bounds__(THREADS,GEMMEPI_BLOCKS)\ngemmepi_mma(GEMMEPI_PARAMS gemmepi__sm80_params params){\nextern __shared__ __align__(128)u8 memory[];\nconst gemmepi__epilogue_params&p=params.epilogue;\nu32 shared=(u32)__cvta_generic_to_shared(memory);\n"
"u32 of_part=params.tile_rows*p.column_tiles,slice=blockIdx.x/of_part,rest=blockIdx.x - slice*of_part;\nu32 item=SPLIT?slice/params.parts:slice;\nint first_k=SPLIT?(int)(slice - item*params.parts)*params.part_k:0;\nu32 of_band=params.band*p.column_tiles,band=rest/of_band,above=band*params.band;\n"
"u32 height=params.tile_rows - above<params.band?params.tile_rows - above:params.band;\nu32 within=rest - band*of_band,tile_n=within/height,tile_m=above + within - tile_n*height;\n\nint warp=threadIdx.x/32,lane=threadIdx.x%32,warp_m=warp%WARPS_M,warp_n=warp/WARPS_M;\n"
"Loader<A_ROWS,TILE_M,GEMMEPI_A_UNIT,1>a(params.a,item,(long long)tile_m*TILE_M,p.m,first_k);\nLoader<B_ROWS,TILE_N,GEMMEPI_B_UNIT,HALVES_IN>b(params.b,item,(long long)tile_n*TILE_COLUMNS,p.n,first_k);\nu32 a_lane=shared +(FMA?value_lane<A_ROWS>(warp_m*WARP_M,row_of_lane())\n"
":fragment_lane<A_ROWS>(warp_m*WARP_M,lane/8%2,lane/16));\nu32 b_lane=shared + A_BYTES +(FMA?value_lane<B_ROWS>(warp_n*WARP_COLUMNS,lane_of_row()*2)\n:fragment_lane<B_ROWS>(warp_n*WARP_COLUMNS,lane/16,lane/8%2));\n"
"int k_left=SPLIT&&params.k - first_k>params.part_k?params.part_k:params.k - first_k;\nint steps=(k_left + TILE_K - 1)/TILE_K;\n#pragma unroll 1\nfor(int i=0;i<STAGES - 1;i++){\nu32 stage=shared + i*STAGE_BYTES;\nif(i==0)\nafter_launches_before();\n#pragma unroll\nfor(int part=0;part<4;part++){\n"
"a.fetch(stage,part,k_left);\nb.fetch(stage + A_BYTES,part,k_left);\na.put(stage,part);\nb.put(stage + A_BYTES,part);\n}\ncopies_commit();\na.next();\nb.next();\nk_left -=TILE_K;\n}\nfloat sums[ROW_BLOCKS][PAIRS*2][4]={};\nFragments fragments[2];\nu32 read=0,written=(STAGES - 1)*STAGE_BYTES;\n"
"copies_wait<STAGES - 2>();\n__syncthreads();\nif(!FMA)\n",
"load_fragments(a_lane,b_lane,0,fragments[0]);\nfor(int block=0;block<steps;block++){\nfloat of_stage[ROW_BLOCKS][PAIRS*2][4]={};\n#pragma unroll\nfor(int step=0;step<STEPS;step++){\nbool last=step==STEPS - 1;\n\na.fetch(shared + written,step,k_left);\n"
"b.fetch(shared + written + A_BYTES,step,k_left);\nif(FMA)\nmultiply_add(a_lane + read,b_lane + read,step,of_stage);\nif(last){\na.put(shared + written,step);\nb.put(shared + written + A_BYTES,step);\ncopies_commit();\nwritten=written + STAGE_BYTES==STAGES*STAGE_BYTES?0:written + STAGE_BYTES;\n"
"read=read + STAGE_BYTES==STAGES*STAGE_BYTES?0:read + STAGE_BYTES;\ncopies_wait<STAGES - 2>();\n__syncthreads();\n}\nif(!FMA){\nload_fragments(a_lane + read,b_lane + read,(step + 1)%STEPS,fragments[(step + 1)%2]);\nmultiply_fragments(fragments[step%2],sums);\n}\nif(!last){\n"
"a.put(shared + written,step);\nb.put(shared + written + A_BYTES,step);\n}\n}\nif(FMA)\ntake_sums(of_stage,sums);\na.next();\nb.next();\nk_left -=TILE_K;\n}\ncopies_wait<0>();\n__syncthreads();\nlong long line=((long long)slice*p.row_tiles)+ tile_m*WARPS_M + warp_m;\n"
"finish(p,slice,(int)(tile_m*TILE_M)+ warp_m*WARP_M,(int)(tile_n*TILE_COLUMNS)+ warp_n*WARP_COLUMNS,line,\nshared + warp*(STAGED_MATRICES*STAGED_BYTES),sums);\n}\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_gemm_sm90_cu[] = {
"#line 1 \"src/kernels/gemm_sm90.cu\"\n#line 30\n#include \"sm90/options.cuh\"\n#include \"sm90/consume.cuh\"\n#include \"sm90/load.cuh\"\n#include \"sm90/totals.cuh\"\n\n\n__device__ inline void prefetch_maps(const gemmepi__sm90_params&p){\nprefetch_map(p.a);\nprefetch_map(p.b);\n"
"if(TAILS&&A_ROWS)\nprefetch_map(p.a_tail);\nif(TAILS&&B_ROWS)\nprefetch_map(p.b_tail);\nif(LOADS_AUX)\nprefetch_map(p.aux);\n}\n\n\n__device__ inline void help(const gemmepi__sm90_params&p,const Shared&shared,u32 rank,u32 step){\nif(threadIdx.x<32&&is_elected())\n"
"produce(p,shared,{rank,first_tile(),step});\nif(SUMMED&&threadIdx.x>=32)\nadd_operand(p,shared,{rank,first_tile(),step});\nif(HAS_BGRAD&&threadIdx.x>=32&&threadIdx.x<32 + CONSUMERS*32)\nadd_column_sums(p,shared,{rank,first_tile(),step});\n__syncwarp();\n\n\nif(SPLIT>1&&SUMMED)\n"
"cluster_barrier();\nelse if(SPLIT>1)\ncluster_meets();\nif(SPLIT>1&& !SENDS_ASYNC)\ncluster_barrier();\nif(SUMMED&&SPLIT>1&&rank==0&&threadIdx.x>=32)\nstore_totals(p,shared,tile_of(p,first_tile(),rank),(int)threadIdx.x/32 - 1);\n}\n\n"
"extern \"C\" __global__ void __launch_bounds__(THREADS,1)__cluster_dims__(CLUSTER,1,1)\ngemmepi_fused(GEMMEPI_PARAMS gemmepi__sm90_params p){\n\nextern __shared__ __align__(1024)u8 memory[];\nconst Shared shared={shared_address(memory)};\n"
"u32 rank=CLUSTER>1?cluster_rank():0,step=gridDim.x/CLUSTER;\nif(shared.first%1024)\n__trap();\n\n\nif(threadIdx.x==0){\nprefetch_maps(p);\nset_up_barriers(shared);\n}\n__syncthreads();\nif(CLUSTER>1)\ncluster_meets();\n\n\nif(threadIdx.x>=32)\nafter_launches_before();\n\n\n"
"if(threadIdx.x<WARPGROUP){\nkeep_registers<PRODUCER_REGISTERS>();\nhelp(p,shared,rank,step);\n}else{\ntake_registers<CONSUMER_REGISTERS>();\nconsume(p,shared,{rank,first_tile(),step});\n}\n\n\nif(CLUSTER>1&&(SPLIT==1||SUMMED))\ncluster_meets();\n}\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_ELEMENTWISE
static const char *const gemmepi__source_operations_cuh[] = {
"#line 1 \"src/kernels/operations.cuh\"\n\n\n#pragma once\n#include \"activation.cuh\"\n#include \"amax.cuh\"\n#include \"params.h\"\n#include \"types.cuh\"\n\n\n#ifndef GEMMEPI_OPERATION\n#define GEMMEPI_OPERATION  1\n#define GEMMEPI_ACTIVATION CODE_SILU\n#define GEMMEPI_USED       0x11\n"
"#define GEMMEPI_ACC        F32\n#define GEMMEPI_A_TYPE     F32\n#define GEMMEPI_B_TYPE     F32\n#define GEMMEPI_W_TYPE     F32\n#define GEMMEPI_DY_TYPE    F32\n#define GEMMEPI_Y_TYPE     F32\n#define GEMMEPI_DA_TYPE    F32\n#define GEMMEPI_DB_TYPE    F32\n#define GEMMEPI_DW_TYPE    F32\n"
"#define GEMMEPI_CAST       0\n#endif\n\ntypedef GEMMEPI_ACC Acc;\n\nenum{IN_A,IN_B,IN_W,IN_DY,OUT_Y,OUT_DA,OUT_DB,OUT_DW,TENSORS};\nenum{\nOP_ACTIVATION=1,OP_ACTIVATION_BACKWARD,OP_GATED,OP_GATED_BACKWARD,OP_LERP,OP_LERP_BACKWARD,OP_BIAS_GRAD,OP_CAST\n};\n\ntemplate<int Tensor>struct Type_of;\n"
"template<>struct Type_of<IN_A>{typedef GEMMEPI_A_TYPE type;};\ntemplate<>struct Type_of<IN_B>{typedef GEMMEPI_B_TYPE type;};\ntemplate<>struct Type_of<IN_W>{typedef GEMMEPI_W_TYPE type;};\ntemplate<>struct Type_of<IN_DY>{typedef GEMMEPI_DY_TYPE type;};\n"
"template<>struct Type_of<OUT_Y>{typedef GEMMEPI_Y_TYPE type;};\ntemplate<>struct Type_of<OUT_DA>{typedef GEMMEPI_DA_TYPE type;};\ntemplate<>struct Type_of<OUT_DB>{typedef GEMMEPI_DB_TYPE type;};\ntemplate<>struct Type_of<OUT_DW>{typedef GEMMEPI_DW_TYPE type;};\n"
"template<int Tensor>using Type=typename Type_of<Tensor>::type;\n\ntypedef Amax_of<Type<IN_A>>Amax;\ntypedef decltype(magnitude(Amax()))Magnitude;\n\ntemplate<int Tensor>constexpr bool USED=(GEMMEPI_USED>>Tensor&1)!=0;\n"
"constexpr bool CAST_SCALE=(GEMMEPI_CAST&1)!=0,CAST_AMAX=(GEMMEPI_CAST&2)!=0;\n\n#define GEMMEPI_EACH_INPUT(DO) DO(IN_A) DO(IN_B) DO(IN_W) DO(IN_DY)\n#define GEMMEPI_EACH_OUTPUT(DO) DO(OUT_Y) DO(OUT_DA) DO(OUT_DB) DO(OUT_DW)\n\n\n"
"template<int Tensor>constexpr int SIZE=USED<Tensor> ?sizeof(Type<Tensor>):1;\ntemplate<int X,int Y>constexpr int LARGER=X>Y?X:Y;\ntemplate<int Tensor>constexpr int LARGER_PAIR=LARGER<SIZE<Tensor>,SIZE<Tensor + 1>>;\nconstexpr int LARGEST_SIZE=\n"
"LARGER<LARGER<LARGER_PAIR<IN_A>,LARGER_PAIR<IN_W>>,LARGER<LARGER_PAIR<OUT_Y>,LARGER_PAIR<OUT_DB>>>;\nconstexpr int VECTOR=16/LARGEST_SIZE<RUN?16/LARGEST_SIZE:RUN;\n\n\nstruct Scalars{\nAcc parameter,weight,rest;\nbool near_a;\nAcc scale;\n};\n"
"__device__ inline Scalars scalars_of(const gemmepi__operation_params&p){\nScalars s;\ns.parameter=(Acc)p.parameter;\ns.weight=(Acc)p.weight;\ns.rest=(Acc)(1 - p.weight);\ns.near_a=p.weight> -0.5&&p.weight<0.5;\ns.scale=CAST_SCALE?(Acc)*p.scale:Acc(1);\nreturn s;\n}\n\n\n"
"__device__ inline void operate(Acc(&v)[TENSORS],const Scalars&s){\nconstexpr int operation=GEMMEPI_OPERATION;\nif constexpr(operation==OP_ACTIVATION){\nv[OUT_Y]=activate<GEMMEPI_ACTIVATION>(v[IN_A],s.parameter);\n}else if constexpr(operation==OP_ACTIVATION_BACKWARD){\n"
"v[OUT_DA]=times_derivative<GEMMEPI_ACTIVATION>(v[IN_DY],v[IN_A],s.parameter);\n}else if constexpr(operation==OP_GATED){\nv[OUT_Y]=times_activation<GEMMEPI_ACTIVATION>(v[IN_A],v[IN_B],s.parameter);\n}else if constexpr(operation==OP_GATED_BACKWARD){\nif(USED<OUT_DA>)\n"
"v[OUT_DA]=times_activation<GEMMEPI_ACTIVATION>(v[IN_DY],v[IN_B],s.parameter);\nif(USED<OUT_DB>){\nAcc dy[1]={v[IN_DY]},value[1]={v[IN_A]},gate[1]={v[IN_B]},db[1];\ngate_gradients<GEMMEPI_ACTIVATION>(dy,value,gate,s.parameter,db);\nv[OUT_DB]=db[0];\n}\n}else if constexpr(operation==OP_LERP){\n"
"Acc a=v[IN_A],b=v[IN_B],w=USED<IN_W> ?v[IN_W]:s.weight,rest=USED<IN_W> ?1 - w:s.rest;\nbool near_a=USED<IN_W> ?w>Acc(-0.5)&&w<Acc(0.5):s.near_a;\nv[OUT_Y]=near_a?a + w*(b - a):b -(b - a)*rest;\n}else if constexpr(operation==OP_LERP_BACKWARD){\n"
"Acc w=USED<IN_W> ?v[IN_W]:s.weight,rest=USED<IN_W> ?1 - w:s.rest;\nv[OUT_DA]=rest*v[IN_DY];\nv[OUT_DB]=w*v[IN_DY];\nif(USED<OUT_DW>)\nv[OUT_DW]=v[IN_DY]*(v[IN_B]- v[IN_A]);\n}else{\nv[OUT_Y]=CAST_SCALE?v[IN_A]*s.scale:v[IN_A];\n}\n}\n\n\n"
"template<int Tensor>using Vector=Words<Type<Tensor>,VECTOR>;\n\n\n\n",
"__device__ inline void operate_on(Acc(&v)[TENSORS][VECTOR],const Scalars&s,Magnitude&largest){\nif(CAST_AMAX)\nkeep_largest_of<Amax>(v[IN_A],largest);\n#pragma unroll\nfor(int i=0;i<VECTOR;i++){\nAcc one[TENSORS];\n#pragma unroll\nfor(int t=0;t<TENSORS;t++)\none[t]=v[t][i];\noperate(one,s);\n"
"#pragma unroll\nfor(int t=OUT_Y;t<TENSORS;t++)\nv[t][i]=one[t];\n}\n}\n\ntemplate<int Tensor>__device__ inline void to_values(const Vector<Tensor> &words,Acc(&v)[TENSORS][VECTOR]){\nwords_to_acc(words,v[Tensor]);\n}\n"
"template<int Tensor>__device__ inline Vector<Tensor>from_values(const Acc(&v)[TENSORS][VECTOR]){\nreturn words_of(run_from_acc<Type<Tensor>>(v[Tensor]));\n}\ntemplate<int Tensor>__device__ inline void repeat_value(Type<Tensor>x,Acc(&v)[TENSORS][VECTOR]){\n#pragma unroll\n"
"for(int i=0;i<VECTOR;i++)\nv[Tensor][i]=to_acc<Acc>(x);\n}\n\n\ntemplate<int Tensor>__device__ inline Vector<Tensor>load_vector(const Type<Tensor> *from,int valid){\nif(valid==VECTOR)\nreturn*reinterpret_cast<const Vector<Tensor> *>(from);\nreturn words_of(read_elements<VECTOR>(from,valid));\n}\n"
"template<int Tensor>__device__ inline void store_vector(Type<Tensor> *to,int valid,const Vector<Tensor> &words){\nif(valid==VECTOR){\n*reinterpret_cast<Vector<Tensor> *>(to)=words;\n}else{\nRun<Type<Tensor>,VECTOR>run=run_of(words);\n#pragma unroll\nfor(int i=0;i<VECTOR;i++)\nif(i<valid)\n"
"to[i]=run.at[i];\n}\n}\n",
    NULL};
#endif

static const char *const gemmepi__source_pack_cu[] = {
"#line 1 \"src/kernels/pack.cu\"\n\n\n#include \"copy.cuh\"\n\n#ifndef GEMMEPI_THREADS\n#define GEMMEPI_THREADS 256\n#endif\n\nconstexpr int THREADS=GEMMEPI_THREADS;\n\n__device__ inline void load_unit(u64 from,u32*to){\nasm volatile(\"ld.global.v4.b32 {%0, %1, %2, %3}, [%4];\"\n"
": \"=r\"(to[0]),\"=r\"(to[1]),\"=r\"(to[2]),\"=r\"(to[3])\n: \"l\"(from)\n: \"memory\");\n}\n__device__ inline void store_unit(void*to,const u32(&words)[4]){\nasm volatile(\"st.global.v4.b32 [%0], {%1, %2, %3, %4};\" ::\"l\"(to),\"r\"(words[0]),\"r\"(words[1]),\"r\"(words[2]),\n\"r\"(words[3])\n"
": \"memory\");\n}\n\n\n__device__ inline void load_across(const u16*from,u32(&to)[4]){\nu64 address=(u64)from,first=address& ~(u64)15;\nu32 words[8];\nload_unit(first,words);\nload_unit(first + 16,words + 4);\n#pragma unroll\nfor(int i=0;i<6;i++)\nwords[i]=address&8?words[i + 2]:words[i];\n"
"#pragma unroll\nfor(int i=0;i<5;i++)\nwords[i]=address&4?words[i + 1]:words[i];\n#pragma unroll\nfor(int i=0;i<4;i++)\nto[i]=__funnelshift_r(words[i],words[i + 1],(u32)(address&2)*8);\n}\n\n"
"extern \"C\" __global__ void __launch_bounds__(THREADS)gemmepi_pack(GEMMEPI_PARAMS gemmepi__convert_params p){\nCopied_run run;\nif(!find_copied_run<THREADS>(p,run))\nreturn;\nlong long left=p.columns - run.column;\nconst u16*x=start_of_run<const u16>(p.x,run);\nu32 words[4]={};\n"
"if(run.column>=RUN&&left>=2*RUN){\nload_across(x,words);\n}else{\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nif(i<left)\nwords[i/2]|=(u32)x[i]<<i%2*16;\n}\nstore_unit(start_of_run<u16>(p.out,run),words);\n}\n",
    NULL};

static const char *const gemmepi__source_params_h[] = {
"#line 1 \"src/kernels/params.h\"\n\n#ifndef GEMMEPI_KERNELS_PARAMS_H\n#define GEMMEPI_KERNELS_PARAMS_H\n\n\ntypedef struct gemmepi__kernel_matrix{\nvoid*data;\nlong long ld,stride;\n}gemmepi__kernel_matrix;\n\n\ntypedef struct gemmepi__kernel_scale{\nconst float*data;\nlong long stride;\n"
"}gemmepi__kernel_scale;\n\n\ntypedef struct gemmepi__epilogue_params{\ngemmepi__kernel_matrix c,bias,aux,residual,d;\ngemmepi__kernel_scale scale_a,scale_b,scale_c,scale_d,scale_aux,scale_residual;\nvoid*amax_d,*amax_aux;\nvoid*partials;\nconst double*device_alpha,*device_beta;\n"
"double alpha,beta;\ndouble parameter;\nlong long m,n;\nunsigned row_tiles,column_tiles;\nint uses_c;\n}gemmepi__epilogue_params;\n\n\ntypedef struct gemmepi__pass_params{\ngemmepi__epilogue_params epilogue;\ngemmepi__kernel_matrix product;\nlong long part;\nint row_steps;\n"
"}gemmepi__pass_params;\n\n\ntypedef struct gemmepi__plain_params{\ngemmepi__epilogue_params epilogue;\ngemmepi__kernel_matrix a,b;\nlong long k;\n}gemmepi__plain_params;\n\n\n\ntypedef struct gemmepi__convert_params{\ngemmepi__kernel_matrix x,out;\nlong long rows,columns,items;\n"
"}gemmepi__convert_params;\n\n\ntypedef struct gemmepi__reduce_params{\ngemmepi__kernel_matrix x;\ngemmepi__kernel_scale scale;\nvoid*out;\nlong long out_stride;\nlong long rows,columns;\nlong long parts;\nlong long part_rows;\n}gemmepi__reduce_params;\n\n\n#ifdef __CUDACC__\n"
"struct alignas(64)gemmepi__tensor_map{\nunsigned long long words[16];\n};\n#else\ntypedef struct gemmepi__tensor_map{\nunsigned long long words[16];\n}gemmepi__tensor_map;\n#endif\n\n\ntypedef struct gemmepi__sm90_params{\ngemmepi__tensor_map a,b;\ngemmepi__tensor_map a_tail,b_tail;\n"
"gemmepi__tensor_map d,aux,residual;\ngemmepi__epilogue_params epilogue;\nunsigned tiles;\nunsigned cluster_rows,cluster_columns;\nunsigned band;\nint k;\nint a_items,b_items;\nvoid*sums;\nlong long sums_stride;\nint sum_tiles;\n}gemmepi__sm90_params;\n\n\ntypedef struct gemmepi__sm80_params{\n"
"gemmepi__epilogue_params epilogue;\ngemmepi__kernel_matrix a,b;\nunsigned tile_rows;\nunsigned band;\nunsigned parts;\nint k,part_k;\n}gemmepi__sm80_params;\n\n\n#define GEMMEPI__PARAMS_TENSORS 8\n#define GEMMEPI__PARAMS_AXES    8\n\n\ntypedef struct gemmepi__operation_params{\n"
"double parameter;\ndouble weight;\nconst float*scale;\nvoid*amax;\n}gemmepi__operation_params;\n\n\ntypedef struct gemmepi__contiguous_params{\ngemmepi__operation_params operation;\nvoid*data[GEMMEPI__PARAMS_TENSORS];\nlong long count;\n}gemmepi__contiguous_params;\n\n\n"
"typedef struct gemmepi__strided_params{\ngemmepi__operation_params operation;\nvoid*data[GEMMEPI__PARAMS_TENSORS];\nlong long stride[GEMMEPI__PARAMS_TENSORS][GEMMEPI__PARAMS_AXES];\nlong long extent_i,extent_j;\nunsigned extent[GEMMEPI__PARAMS_AXES];\nunsigned tiles_i,tiles_j;\nint rank;\n"
"}gemmepi__strided_params;\n\n\ntypedef struct gemmepi__axes{\nlong long extent[GEMMEPI__PARAMS_AXES];\nlong long stride[GEMMEPI__PARAMS_TENSORS][GEMMEPI__PARAMS_AXES];\nint rank;\n}gemmepi__axes;\ntypedef struct gemmepi__sum_params{\ngemmepi__operation_params operation;\n"
"void*data[GEMMEPI__PARAMS_TENSORS];\ngemmepi__axes kept,summed;\nlong long kept_count,\nsummed_count;\nlong long part_count;\nunsigned kept_blocks;\n}gemmepi__sum_params;\n\n\ntypedef struct gemmepi__scaled_params{\nvoid*a,*y;\nconst float*scale;\nfloat*y_scale;\nvoid*amax;\n"
"long long extent[GEMMEPI__PARAMS_AXES];\nlong long stride_a[GEMMEPI__PARAMS_AXES],stride_y[GEMMEPI__PARAMS_AXES];\nunsigned tiles[2];\nint rank;\n}gemmepi__scaled_params;\n\n#endif\n",
    NULL};

static const char *const gemmepi__source_pass_cu[] = {
"#line 1 \"src/kernels/pass.cu\"\n\n\n#include \"epilogue.cuh\"\n\n#ifndef GEMMEPI_PRODUCT_TYPE\n#define GEMMEPI_PRODUCT_TYPE F32\n#define GEMMEPI_HAS_PRODUCT  1\n#define GEMMEPI_PARTS        1\n#endif\n\nconstexpr int THREADS=256,PARTS=GEMMEPI_PARTS;\n\n\n#if __CUDA_ARCH__ < 800\n"
"constexpr int MOST_AT_ONCE=BACKWARD?2:4;\n#else\nconstexpr int MOST_AT_ONCE=2;\n#endif\nconstexpr int AT_ONCE=\nsizeof(Acc)==8||GATED||sizeof(GEMMEPI_PRODUCT_TYPE)==4?1:MOST_AT_ONCE;\n\n#if __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1200\n"
"constexpr bool IS_LEAN=PARTS==1&&WHOLE&&GEMMEPI_APPLIED&&ALIGNED&&sizeof(Acc)==4;\nconstexpr bool KEEPS_MORE=GATED?UPSTREAM||sizeof(GEMMEPI_PRODUCT_TYPE)==4\n:UPSTREAM&&HAS_BGRAD&&__CUDA_ARCH__>=1000;\nconstexpr int BLOCKS= !IS_LEAN?1:KEEPS_MORE?2:3;\n#else\nconstexpr int BLOCKS=1;\n#endif\n\n\n"
"struct Rows{\nlong long item,first,column;\nint count,run;\n};\n\n\nstruct Fetched{\nWords<GEMMEPI_PRODUCT_TYPE>products[HALVES_IN];\nSaved saved;\n};\n\n__device__ inline void fetch(const gemmepi__pass_params&params,const Epilogue_state&state,const Rows&rows,int r,Fetched&fetched){\n"
"long long row=rows.first +(long long)r*blockDim.y;\nint exists=r<rows.count?rows.run:0;\n#pragma unroll\nfor(int half=0;half<HALVES_IN;half++)\nfetched.products[half]=read_run<ALIGNED>(\n(const GEMMEPI_PRODUCT_TYPE*)params.product.data +\n"
"offset(params.product,rows.item,row,rows.column + half*params.epilogue.n),\nGEMMEPI_HAS_PRODUCT?exists:0);\nload_saved(params.epilogue,state,rows.item,row,rows.column,exists,fetched.saved);\n}\n\n\n"
"__device__ inline void add_parts(const gemmepi__pass_params&params,const Rows&rows,long long row,Acc(&v)[HALVES][RUN]){\n#pragma unroll\nfor(int half=0;half<HALVES_IN;half++){\nconst GEMMEPI_PRODUCT_TYPE*from=\n(const GEMMEPI_PRODUCT_TYPE*)params.product.data +\n"
"offset(params.product,rows.item,row,rows.column + half*params.epilogue.n);\n#pragma unroll 4\nfor(int part=1;part<PARTS;part++){\nAcc more[RUN];\nrun_to_acc(run_of(read_run<ALIGNED>(from + part*params.part,rows.run)),more);\n#pragma unroll\nfor(int i=0;i<RUN;i++)\n"
"v[half][i]=sum(v[half][i],more[i]);\n}\n}\n}\n\nextern \"C\" __global__ void __launch_bounds__(THREADS,BLOCKS)gemmepi_pass(GEMMEPI_PARAMS gemmepi__pass_params params){\nconst gemmepi__epilogue_params&p=params.epilogue;\nafter_launches_before();\nu32 part=blockIdx.x/p.column_tiles;\n"
"u32 item=part/p.row_tiles;\nlong long column=(long long)(blockIdx.x - part*p.column_tiles)*blockDim.x*RUN + threadIdx.x*RUN;\nlong long row=(long long)(part - item*p.row_tiles)*params.row_steps*blockDim.y + threadIdx.y;\nint valid=column>=p.n?0:WHOLE||p.n - column>=RUN?RUN:(int)(p.n - column);\n"
"int most=row>=p.m?0:p.m - row>(long long)params.row_steps*blockDim.y?params.row_steps:(int)((p.m - row + blockDim.y - 1)/blockDim.y);\nRows rows={item,row,column,valid?most:0,WHOLE?RUN:valid};\nEpilogue_state state=begin_epilogue(p,item,column,valid);\nAcc sums[HALVES_OUT][RUN]={};\n"
"Fetched ahead[AT_ONCE];\n#pragma unroll\nfor(int r=0;r<AT_ONCE;r++)\nfetch(params,state,rows,r,ahead[r]);\nfor(int first=0;first<rows.count;first +=AT_ONCE){\n#pragma unroll\nfor(int r=0;r<AT_ONCE;r++){\nFetched now=ahead[r];\nAcc v[HALVES][RUN];\n"
"fetch(params,state,rows,first + r + AT_ONCE,ahead[r]);\nif(first + r>=rows.count)\ncontinue;\n#pragma unroll\nfor(int half=0;half<HALVES_IN;half++)\nrun_to_acc(run_of(now.products[half]),v[half]);\nlong long at=row +(long long)(first + r)*blockDim.y;\nadd_parts(params,rows,at,v);\n"
"epilogue(p,state,load_columns(p,item,column,rows.run),now.saved,item,at,column,rows.run,v);\nstore_result(p,state,item,at,column,rows.run,v);\nif(HAS_BGRAD)\n#pragma unroll\nfor(int i=0;i<HALVES_OUT*RUN;i++)\nsums[i/RUN][i%RUN]=sum(sums[i/RUN][i%RUN],v[i/RUN][i%RUN]);\n}\n}\nif(HAS_BGRAD)\n"
"store_partials<THREADS>(p,part,column,valid,threadIdx.x,threadIdx.y,blockDim.x,sums);\nend_epilogue(p,state);\n}\n",
    NULL};

static const char *const gemmepi__source_reduce_cu[] = {
"#line 1 \"src/kernels/reduce.cu\"\n\n\n#include \"types.cuh\"\n#include \"params.h\"\n\n#ifndef GEMMEPI_X_TYPE\n#define GEMMEPI_X_TYPE     F32\n#define GEMMEPI_OUT_TYPE   F32\n#define GEMMEPI_ACCUMULATE 0\n#define GEMMEPI_X_SCALE    0\n#define GEMMEPI_ROWS       8\n#endif\n\n"
"constexpr int COLUMNS=32,ROWS=GEMMEPI_ROWS;\nconstexpr int LINE_THREADS=128;\nconstexpr u32 AT_ONCE=8;\nconstexpr bool VARIES=GEMMEPI_X_SCALE==SCALE_VECTOR_128||GEMMEPI_X_SCALE==SCALE_BLOCK_128;\n\n\n__device__ inline double whole_scale(const float*scale,long long outer){\n"
"return GEMMEPI_X_SCALE==SCALE_TENSOR?scale[0]:GEMMEPI_X_SCALE==SCALE_OUTER?scale[outer]:1;\n}\n\n__device__ inline void finish(const gemmepi__reduce_params&p,long long line,long long at,double sum){\nGEMMEPI_OUT_TYPE*out=(GEMMEPI_OUT_TYPE*)p.out + line*p.out_stride + at;\nif(GEMMEPI_ACCUMULATE)\n"
"sum +=to_acc<double>(*out);\n*out=from_acc<GEMMEPI_OUT_TYPE>(sum);\n}\n\n\n\n__device__ inline double sum_up(const GEMMEPI_X_TYPE*x,long long stride,long long first,int step,long long last,\nconst Scale_line&factors){\nu32 count=first<last?(u32)((last - first + step - 1)/step):0,i=0;\n"
"double sum=0;\nx +=first*stride;\nstride*=step;\n#pragma unroll 1\ndo{\nGEMMEPI_X_TYPE values[AT_ONCE]={};\nif(i==0)\nafter_launches_before();\n#pragma unroll\nfor(u32 j=0;j<AT_ONCE;j++,x +=stride)\nif(i + j<count)\nvalues[j]= *x;\n#pragma unroll\nfor(u32 j=0;j<AT_ONCE;j++)\nif(!VARIES)\n"
"sum +=to_acc<double>(values[j]);\nelse if(i + j<count)\nsum +=to_acc<double>(values[j])*factors.at[(first +(long long)(i + j)*step)/SCALE_STEPS*factors.step];\ni +=AT_ONCE;\n}while(i<count);\nreturn sum;\n}\n\n\nextern \"C\" __global__ void __launch_bounds__(COLUMNS*ROWS,1)\n"
"gemmepi_sum_columns(GEMMEPI_PARAMS gemmepi__reduce_params p){\n__shared__ double shared[ROWS][COLUMNS];\nu32 column_tiles=(u32)((p.columns + COLUMNS - 1)/COLUMNS);\nu32 line=blockIdx.x/column_tiles,item=line/(u32)p.parts;\n"
"long long column=(long long)(blockIdx.x - line*column_tiles)*COLUMNS + threadIdx.x;\nlong long first=(line - item*(u32)p.parts)*p.part_rows;\nlong long last=first + p.part_rows<p.rows?first + p.part_rows:p.rows;\nconst float*scale=p.scale.data + item*p.scale.stride;\n"
"shared[threadIdx.y][threadIdx.x]=\nsum_up((const GEMMEPI_X_TYPE*)p.x.data + item*p.x.stride + column,p.x.ld,first + threadIdx.y,ROWS,\ncolumn<p.columns?last:0,scale_line<GEMMEPI_X_SCALE>(scale,column,p.columns,p.rows));\nfor(int half=ROWS/2;half>0;half/=2){\n__syncthreads();\n"
"if(threadIdx.y<half)\nshared[threadIdx.y][threadIdx.x]+=shared[threadIdx.y + half][threadIdx.x];\n}\nif(threadIdx.y==0&&column<p.columns)\nfinish(p,line,column,shared[0][threadIdx.x]*whole_scale(scale,column));\n}\n\n\nextern \"C\" __global__ void __launch_bounds__(LINE_THREADS,1)\n"
"gemmepi_sum_rows(GEMMEPI_PARAMS gemmepi__reduce_params p){\n__shared__ double shared[LINE_THREADS];\nu32 item=blockIdx.x/(u32)p.rows;\nlong long row=blockIdx.x - item*(u32)p.rows;\nconst float*scale=p.scale.data + item*p.scale.stride;\nshared[threadIdx.x]=\n"
"sum_up((const GEMMEPI_X_TYPE*)p.x.data + item*p.x.stride + row*p.x.ld,1,threadIdx.x,LINE_THREADS,p.columns,\nscale_line<GEMMEPI_X_SCALE>(scale,row,p.rows,p.columns));\nfor(int half=LINE_THREADS/2;half>0;half/=2){\n__syncthreads();\nif(threadIdx.x<half)\n"
"shared[threadIdx.x]+=shared[threadIdx.x + half];\n}\nif(threadIdx.x==0)\nfinish(p,item,row,shared[0]*whole_scale(scale,row));\n}\n",
    NULL};

#ifndef GEMMEPI_NO_ELEMENTWISE
static const char *const gemmepi__source_scaled_cu[] = {
"#line 1 \"src/kernels/scaled.cu\"\n\n\n\n#include \"amax.cuh\"\n#include \"params.h\"\n#include \"types.cuh\"\n\n#ifndef GEMMEPI_A_TYPE\n#define GEMMEPI_A_TYPE   F32\n#define GEMMEPI_Y_TYPE   E4M3\n#define GEMMEPI_ACC      F32\n#define GEMMEPI_MODE     3\n#define GEMMEPI_K_FAST   1\n"
"#define GEMMEPI_VECTORS  0\n#define GEMMEPI_SCALE    2\n#define GEMMEPI_AMAX     0\n#define GEMMEPI_STORES   1\n#define GEMMEPI_SLOW     64\n#endif\n\nenum{AS_IT_IS,GIVEN,FROM_TILE,FROM_AMAX};\n\ntypedef GEMMEPI_ACC Acc;\ntypedef GEMMEPI_A_TYPE A;\ntypedef GEMMEPI_Y_TYPE Y;\n"
"typedef Amax_of<A>Amax;\ntypedef decltype(magnitude(Amax()))Magnitude;\n\nconstexpr int TILE=SCALE_STEPS,SLOW=GEMMEPI_SLOW,THREADS=4*SLOW;\nconstexpr int LARGEST_SIZE=sizeof(A)>sizeof(Y)?sizeof(A):sizeof(Y);\nconstexpr int WIDE= !GEMMEPI_VECTORS?1:16/LARGEST_SIZE<RUN?16/LARGEST_SIZE:RUN;\n"
"constexpr int LANES=TILE/WIDE,ROWS=THREADS/LANES;\nconstexpr int VECTORS=SLOW/ROWS;\nconstexpr bool K_FAST=GEMMEPI_K_FAST;\nconstexpr bool TAKES_AMAX=GEMMEPI_AMAX||GEMMEPI_SCALE==FROM_TILE;\nconstexpr int WORDS=WIDE*sizeof(A)<4?VECTORS:VECTORS*WIDE*(int)sizeof(A)/4;\n"
"constexpr bool KEEPS_VALUES=WORDS<=64&&WIDE>1;\n\n\nconstexpr bool BY_ROWS=GEMMEPI_MODE==SCALE_OUTER||GEMMEPI_MODE==SCALE_VECTOR_128;\n__device__ inline int group_of(int fast,int slow){\nreturn BY_ROWS?K_FAST?slow:fast:0;\n}\n\n\n"
"__device__ inline long long place_of(const gemmepi__scaled_params&p,long long item,long long fast,long long slow){\nlong long row=K_FAST?slow:fast,k=K_FAST?fast:slow;\nlong long rows=p.extent[K_FAST?1:0],steps=(p.extent[K_FAST?0:1]+ SCALE_STEPS - 1)/SCALE_STEPS;\nif(GEMMEPI_MODE==SCALE_TENSOR)\n"
"return 0;\nif(GEMMEPI_MODE==SCALE_OUTER)\nreturn item*rows + row;\nif(GEMMEPI_MODE==SCALE_VECTOR_128)\nreturn(item*steps + k/SCALE_STEPS)*rows + row;\nlong long line=(steps + 3)/4*4;\nreturn(item*((rows + SCALE_STEPS - 1)/SCALE_STEPS)+ row/SCALE_STEPS)*line + k/SCALE_STEPS;\n}\n\n"
"__device__ inline float number_of(u32 bits){\nreturn __uint_as_float(bits);\n}\n__device__ inline double number_of(u64 bits){\nreturn __longlong_as_double((long long)bits);\n}\n\n\n__device__ inline float scale_from(Magnitude bits){\nconstexpr float largest=SAME<Y,E5M2> ?57344.f:448.f;\n"
"Acc amax=number_of(bits);\nconstexpr float least=1.17549435e-38f,most=3.40282347e38f;\nAcc scale=amax/largest;\nreturn amax==0||amax - amax!=0?1.f:scale<least?least:scale>most?most:(float)scale;\n}\n\n"
"extern \"C\" __global__ void __launch_bounds__(THREADS,1024/THREADS)gemmepi_scaled(GEMMEPI_PARAMS gemmepi__scaled_params p){\n__shared__ Magnitude largest[TILE];\n__shared__ Acc factor[TILE];\nu32 rest=blockIdx.x/p.tiles[0],item=rest/p.tiles[1],outer=item;\n"
"long long fast=(long long)(blockIdx.x - rest*p.tiles[0])*TILE,slow=(long long)(rest - item*p.tiles[1])*SLOW;\nint extent_fast=p.extent[0]- fast<TILE?(int)(p.extent[0]- fast):TILE;\nint extent_slow=p.extent[1]- slow<SLOW?(int)(p.extent[1]- slow):SLOW;\n"
"const A*a=(const A*)p.a + fast*p.stride_a[0]+ slow*p.stride_a[1];\nY*y=(Y*)p.y + fast*p.stride_y[0]+ slow*p.stride_y[1];\nfor(int d=2;d<p.rank;d++){\nu32 extent=(u32)p.extent[d],next=outer/extent,at=outer - next*extent;\na +=at*p.stride_a[d];\ny +=at*p.stride_y[d];\nouter=next;\n}\n"
"int groups=BY_ROWS?K_FAST?extent_slow:extent_fast:1,i=threadIdx.x%LANES*WIDE,j=threadIdx.x/LANES;\nint left=extent_fast - i,valid=left<WIDE?left:WIDE;\nWords<A,WIDE>words[KEEPS_VALUES?VECTORS:1];\nif(threadIdx.x<TILE){\nlargest[threadIdx.x]=0;\nif(GEMMEPI_SCALE==GIVEN&&threadIdx.x<groups)\n"
"factor[threadIdx.x]=p.scale[place_of(p,item,fast +(K_FAST?0:threadIdx.x),slow +(K_FAST?threadIdx.x:0))];\n}\nauto load=[&](int v)->Words<A,WIDE>{\nint row=j + v*ROWS;\nconst A*from=a + row*p.stride_a[1]+ i*p.stride_a[0];\nif(row<extent_slow&&valid==WIDE)\n"
"return*reinterpret_cast<const Words<A,WIDE> *>(from);\nreturn words_of(read_elements<WIDE>(from,row<extent_slow?valid:0));\n};\nif(KEEPS_VALUES)\n#pragma unroll\nfor(int v=0;v<VECTORS;v++)\nwords[KEEPS_VALUES?v:0]=load(v);\n__syncthreads();\n",
"if(TAKES_AMAX){\nMagnitude columns[WIDE]={};\n#pragma unroll KEEPS_VALUES ? VECTORS : 8\nfor(int v=0;v<VECTORS;v++){\nAcc values[WIDE];\nMagnitude row=0;\nwords_to_acc(KEEPS_VALUES?words[KEEPS_VALUES?v:0]:load(v),values);\nkeep_largest_of<Amax>(values,row);\n#pragma unroll\n"
"for(int e=0;e<WIDE;e++)\n{\nMagnitude size=magnitude((Amax)values[e]);\ncolumns[e]=size>columns[e]?size:columns[e];\n}\nif(BY_ROWS&&K_FAST){\n#pragma unroll\nfor(int step=(LANES<32?LANES:32)/2;step>0;step/=2){\nMagnitude other=__shfl_xor_sync(0xffffffff,row,step);\nrow=other>row?other:row;\n}\n"
"if(threadIdx.x%(LANES<32?LANES:32)==0)\natomicMax(&largest[j + v*ROWS],row);\n}\n}\nif(!(BY_ROWS&&K_FAST)){\nMagnitude all=0;\n#pragma unroll\nfor(int e=0;e<WIDE;e++){\nif(BY_ROWS)\natomicMax(&largest[i + e],columns[e]);\nall=columns[e]>all?columns[e]:all;\n}\n"
"all=BY_ROWS?all:largest_of_warp(all);\nif(!BY_ROWS&&threadIdx.x%32==0)\natomicMax(&largest[0],all);\n}\n__syncthreads();\n}\nif(threadIdx.x<groups){\nlong long at=place_of(p,item,fast +(K_FAST?0:threadIdx.x),slow +(K_FAST?threadIdx.x:0));\nif(GEMMEPI_SCALE==FROM_TILE||GEMMEPI_SCALE==FROM_AMAX){\n"
"float scale=scale_from(GEMMEPI_SCALE==FROM_TILE?largest[threadIdx.x]:((const Magnitude*)p.amax)[at]);\nfactor[threadIdx.x]=1/(Acc)scale;\nif(GEMMEPI_SCALE==FROM_TILE||(GEMMEPI_MODE==SCALE_TENSOR?blockIdx.x==0:(K_FAST?fast:slow)==0))\np.y_scale[at]=scale;\n}\n"
"if(GEMMEPI_AMAX&&(GEMMEPI_MODE==SCALE_TENSOR||GEMMEPI_MODE==SCALE_OUTER))\nraise_to((Magnitude*)p.amax + at,largest[threadIdx.x]);\nelse if(GEMMEPI_AMAX)\n((Magnitude*)p.amax)[at]=largest[threadIdx.x];\n}\nif(!GEMMEPI_STORES)\nreturn;\n__syncthreads();\n#pragma unroll KEEPS_VALUES ? VECTORS : 8\n"
"for(int v=0;v<VECTORS;v++){\nAcc values[WIDE];\nint row=j + v*ROWS;\nwords_to_acc(KEEPS_VALUES?words[KEEPS_VALUES?v:0]:load(v),values);\n#pragma unroll\nfor(int e=0;e<WIDE;e++){\nif(GEMMEPI_SCALE!=AS_IT_IS)\nvalues[e]*=factor[group_of(i + e,row)];\n}\nRun<Y,WIDE>run=run_from_acc<Y>(values);\n"
"Y*to=y + row*p.stride_y[1]+ i*p.stride_y[0];\nif(row<extent_slow&&valid==WIDE)\n*reinterpret_cast<Words<Y,WIDE> *>(to)=words_of(run);\nelse if(row<extent_slow)\n#pragma unroll\nfor(int e=0;e<WIDE;e++)\nif(e<valid)\nto[e]=run.at[e];\n}\n}\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_sm90_barriers_cuh[] = {
"#line 1 \"src/kernels/sm90/barriers.cuh\"\n#line 19\n#pragma once\n#include \"sm90/ptx.cuh\"\n#include \"sm90/shared.cuh\"\n\n\nconstexpr u32 TELLERS=CLUSTER_N + CLUSTER_M - 1;\n\n\n__device__ inline void set_up_barriers(const Shared&shared){\nfor(int i=0;i<STAGES;i++){\n"
"barrier_init(shared.full(i),1);\nbarrier_init(shared.empty(i),((PING_PONG?1:CONSUMERS)+ SUMMERS)*TELLERS);\n}\nfor(int i=0;i<(INPUTS?2*WARPS:0);i++)\nbarrier_init(shared.first + Shared::INPUT_FULL + i*8,1);\nif(SPLIT>1)\nbarrier_init(shared.received(),1);\n"
"for(int i=0;i<(HAS_BGRAD?CONSUMERS:0);i++){\nbarrier_init(shared.slot_full(i),4);\nbarrier_init(shared.slot_empty(i),1);\n}\nbarriers_are_set();\n}\n\n\n\n__device__ inline void turn_wait(u32 warpgroup){\n"
"asm volatile(\"bar.sync %0, %1;\" ::\"r\"(1 + warpgroup),\"n\"(CONSUMERS*WARPGROUP): \"memory\");\n}\n__device__ inline void turn_give(u32 warpgroup){\nasm volatile(\"bar.arrive %0, %1;\" ::\"r\"(1 + warpgroup),\"n\"(CONSUMERS*WARPGROUP): \"memory\");\n}\n"
"__device__ inline void warpgroup_meets(u32 warpgroup){\nasm volatile(\"bar.sync %0, %1;\" ::\"r\"(4 + warpgroup),\"n\"(WARPGROUP): \"memory\");\n}\n\n__device__ inline void both_meet(){\nasm volatile(\"bar.sync 6, %0;\\nbar.sync 6, %0;\" ::\"n\"(CONSUMERS*WARPGROUP): \"memory\");\n}\n"
"__device__ inline void meet_summers(){\nasm volatile(\"bar.sync 7, %0;\\nbar.sync 7, %0;\" ::\"n\"(WARPGROUP + SUMMERS*32): \"memory\");\n}\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_sm90_box_cuh[] = {
"#line 1 \"src/kernels/sm90/box.cuh\"\n\n#pragma once\n#include \"sm90/box_memory.cuh\"\n#include \"sm90/column_sums.cuh\"\n#include \"sm90/columns.cuh\"\n#include \"sm90/mask.cuh\"\n\n\n\n\nstruct Next_box{\nbool exists;\nint row,group;\n};\n\n\nstruct Sums_of_box{\n"
"float at[HALVES_IN][BOX_COLUMNS/8][4];\n};\nstruct Box{\nconst Tile&tile;\nint row,part,group;\nconst Of_columns(&columns)[BOX_GROUPS];\nconst Masks&masks;\nconst Sums_of_box&sums;\nNext_box next;\n};\n\n\nstruct Finisher{\nEpilogue_state&state;\nBuffers&buffers;\n};\n\n\n"
"__device__ inline Sums_of_box sums_of_box(const float(&sums)[TILE_N/2],int group){\nSums_of_box box;\n#pragma unroll\nfor(int j=0;j<HALVES_IN*BOX_COLUMNS/2;j++)\nbox.at[j/(BOX_COLUMNS/2)][j%(BOX_COLUMNS/2)/4][j%4]=\nsums[(j/(BOX_COLUMNS/2)*TILE_COLUMNS + group*GROUP)/2 + j%(BOX_COLUMNS/2)];\n"
"return box;\n}\n\n__device__ inline void drop_first_box(float(&sums)[TILE_N/2]){\n#pragma unroll\nfor(int i=0;i + BOX_COLUMNS/2<TILE_N/2;i++)\nsums[i]=sums[i + BOX_COLUMNS/2];\n}\n\n\n\n\nstruct Run_place{\nint half,g,row,column,valid;\n};\n"
"__device__ inline Run_place place_of_run(const gemmepi__sm90_params&params,const Box&box,int half,int g){\nint group=box.group + g;\nint at=box.row + threadIdx.x%32/4 + half*8,column=box.tile.n*TILE_COLUMNS + lane_of_row()*2 + group*GROUP;\nif(BACKWARD&& !GEMMEPI_APPLIED)\n"
"asm volatile(\"\" : \"+r\"(at),\"+r\"(column));\nreturn{half,g,at,column,at<(int)params.epilogue.m?columns_left(params,box.tile,group):0};\n}\n\n\n__device__ inline void load_saved_run(const gemmepi__sm90_params&params,const Finisher&finisher,const Box&box,\nconst Run_place&at,Saved&saved){\n"
"#pragma unroll\nfor(int i=0;i<INPUT_AUX;i++)\nfinisher.state.loaded_aux[i]=input_at(finisher.buffers,i,at.half,at.g);\nif(LOADS_MASK)\nfinisher.state.loaded_mask=mask_of(box.masks,box.part,at.half,box.group + at.g);\n"
"load_saved(params.epilogue,finisher.state,box.tile.item,at.row,at.column,at.valid,saved);\n}\n\n\n__device__ inline void set_outputs(Epilogue_state&state,const Buffers&buffers,const Run_place&at){\n#pragma unroll\nfor(int i=0;i<OUTPUT_D;i++)\n"
"state.staged_d[i]=IN_PLACE?input_at(buffers,i,at.half,at.g):output_at(buffers,i,at.half,at.g);\n#pragma unroll\nfor(int i=0;i<OUTPUTS - OUTPUT_D;i++)\nstate.staged_aux[i]=output_at(buffers,i + OUTPUT_D,at.half,at.g);\n}\n\n\n\n"
"constexpr bool SAVED_FIRST= !GATED&& !UPSTREAM&& !HAS_RESIDUAL&&(LOADS_AUX||LOADS_MASK);\n\n\ntypedef Saved Saved_runs[BOX_GROUPS][2];\n\n\n__device__ inline bool box_is_near(const Saved_runs&saved){\nNear near;\n#pragma unroll\nfor(int i=0;i<BOX_GROUPS*2;i++)\n"
"near.take_in(saved[i/2][i%2].runs[0]);\nreturn __all_sync(0xffffffffu,near.has_all());\n}\n\ntemplate<bool IsNear>\n__device__ inline void finish_run(const gemmepi__sm90_params&params,const Finisher&finisher,const Box&box,\nconst Run_place&at,Saved&saved,Acc(&v)[HALVES][RUN]){\n"
"const gemmepi__epilogue_params&p=params.epilogue;\nEpilogue_state&state=finisher.state;\n#pragma unroll\nfor(int i=0;i<HALVES_IN*RUN;i++)\nv[i/RUN][i%RUN]=box.sums.at[i/RUN][at.g*4 + i%RUN/2][at.half*2 + i%2];\nset_outputs(state,finisher.buffers,at);\n#pragma unroll\n"
"for(int i=0;i<INPUTS - INPUT_AUX;i++)\nstate.loaded_residual[i]=input_at(finisher.buffers,i + INPUT_AUX,at.half,at.g);\nstate.mask_place=at.half + 2*at.g;\nif(!SAVED_FIRST)\nload_saved_run(params,finisher,box,at,saved);\n"
"epilogue<IsNear>(p,state,box.columns[at.g],saved,box.tile.item,at.row,at.column,at.valid,v);\nif(!SAVED_FIRST)\nstore_result(p,state,box.tile.item,at.row,at.column,at.valid,v);\n}\n\ntemplate<bool IsNear>\n"
"__device__ inline void finish_runs(const gemmepi__sm90_params&params,const Finisher&finisher,const Box&box,Saved_runs&saved,\nBox_sums&column_sums){\nconst gemmepi__epilogue_params&p=params.epilogue;\n#pragma unroll\nfor(int g=0;g<BOX_GROUPS;g++){\nAcc results[2][HALVES][RUN];\n#pragma unroll\n"
"for(int half=0;half<2;half++){\nRun_place at=place_of_run(params,box,half,g);\n",
"finish_run<IsNear>(params,finisher,box,at,saved[g][half],results[half]);\nif(HAS_BGRAD)\ncolumn_sums[g].add(results[half],at.row<(int)p.m);\n}\n#pragma unroll\nfor(int half=0;half<(SAVED_FIRST?2:0);half++){\nRun_place at=place_of_run(params,box,half,g);\n"
"set_outputs(finisher.state,finisher.buffers,at);\nstore_result(p,finisher.state,box.tile.item,at.row,at.column,at.valid,results[half]);\n}\nif(HAS_BGRAD)\ncolumn_sums[g].end_rows();\nif(IN_PLACE&&g==0&&box.next.exists)\n"
"ask_for_inputs(params,finisher.buffers,box.tile,box.next.row,box.next.group);\n}\n}\n\n\n\n__device__ inline void finish_box(const gemmepi__sm90_params&params,const Finisher&finisher,const Box&box,\nBox_sums&column_sums){\nSaved_runs saved;\nif(!IN_PLACE&&box.next.exists)\n"
"ask_for_inputs(params,finisher.buffers,box.tile,box.next.row,box.next.group);\nwait_for_inputs(finisher.buffers);\n#pragma unroll\nfor(int i=0;i<(SAVED_FIRST?BOX_GROUPS*2:0);i++)\nload_saved_run(params,finisher,box,place_of_run(params,box,i%2,i/2),saved[i/2][i%2]);\nif(OUTPUTS)\n"
"begin_outputs();\nif(LOOKS_NEAR&&box_is_near(saved))\nfinish_runs<LOOKS_NEAR>(params,finisher,box,saved,column_sums);\nelse\nfinish_runs<false>(params,finisher,box,saved,column_sums);\nif(KEEPS_MASK)\n"
"store_kept_masks(params.epilogue,finisher.state,box.tile.item,box.row,box.tile.n*TILE_COLUMNS + box.group*GROUP,\nBOX_GROUPS);\nif(HAS_OUTPUTS)\nend_outputs(params,finisher.buffers,box.tile.n*TILE_COLUMNS + box.group*GROUP,box.row,box.tile.item);\nfinisher.buffers.taken++;\n}\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_sm90_box_memory_cuh[] = {
"#line 1 \"src/kernels/sm90/box_memory.cuh\"\n\n\n\n#pragma once\n#include \"sm90/barriers.cuh\"\n#include \"sm90/schedule.cuh\"\n\n\nstruct Buffers{\nu32 outputs;\nu32 line;\nint turn;\nu32 inputs,full;\nu32 asked,taken;\n};\n__device__ inline Buffers buffers_of(const Shared&shared){\n"
"return{shared.outputs(),\nBOX_GROUPS==1?threadIdx.x%32/4:threadIdx.x%8,\n0,\nshared.inputs(),\nshared.input_full(),\n0,\n0};\n}\n\n\n\n__device__ inline u32 place_in_box(const Buffers&buffers,int half,int group){\nu32 unit=BOX_GROUPS==1?threadIdx.x%4/2:group*4 + threadIdx.x%32/8;\n"
"return(half*8 + buffers.line)*LINE +((unit ^ buffers.line)<<4)+(BOX_GROUPS==1?threadIdx.x%2*8:0);\n}\n__device__ inline u32 output_at(const Buffers&buffers,int matrix,int half,int group){\nreturn buffers.outputs +(buffers.turn*OUTPUTS + matrix)*BOX_BYTES + place_in_box(buffers,half,group);\n}\n"
"__device__ inline u32 input_at(const Buffers&buffers,int matrix,int half,int group){\nreturn buffers.inputs +(buffers.taken%2*INPUTS + matrix)*BOX_BYTES + place_in_box(buffers,half,group);\n}\n\n\n\n\n"
"__device__ inline void ask_for_inputs(const gemmepi__sm90_params&p,Buffers&buffers,const Tile&tile,int row,int group){\nif(INPUTS==0)\nreturn;\n__syncwarp();\nif(is_elected()){\nif(IN_PLACE&&buffers.asked==buffers.taken)\nwait_for_stores<1>();\nelse if(IN_PLACE)\nwait_for_stores<0>();\n"
"u32 buffer=buffers.asked%2,full=buffers.full + buffer*8;\nu32 to=buffers.inputs + buffer*INPUTS*BOX_BYTES;\nint column=tile.n*TILE_COLUMNS + group*GROUP;\nbarrier_expect(full,INPUTS*BOX_BYTES);\n#pragma unroll\nfor(int half=0;half<INPUT_AUX;half++)\n"
"load_input(p.aux,to + half*BOX_BYTES,full,column,row,half,tile.item);\n#pragma unroll\nfor(int half=0;half<INPUTS - INPUT_AUX;half++)\nload_input(p.residual,to +(INPUT_AUX + half)*BOX_BYTES,full,column,row,half,tile.item);\n}\nbuffers.asked++;\n}\n"
"__device__ inline void wait_for_inputs(const Buffers&buffers){\nif(INPUTS)\nbarrier_wait(buffers.full + buffers.taken%2*8,buffers.taken/2&1);\n}\n\n\n\n\n__device__ inline void begin_outputs(){\nwait_for_stores<OUTPUT_BUFFERS - 1>();\n__syncwarp();\n}\n\n\n"
"__device__ inline u32 outputs_of_box(const Buffers&buffers){\nreturn IN_PLACE?buffers.inputs + buffers.taken%2*INPUTS*BOX_BYTES\n:buffers.outputs + buffers.turn*OUTPUTS*BOX_BYTES;\n}\n\ntemplate<class T>\n"
"__device__ inline void copy_matrix(const gemmepi__epilogue_params&p,const gemmepi__kernel_matrix&x,u32 from,int column,\nint row,int half,int item){\ncopy_box<T,BOX_COLUMNS,true>(from,(T*)x.data + offset(x,item,row,column + half*p.n),x.ld,(int)p.m - row,\n(int)p.n - column);\n}\n\n"
"__device__ inline void end_outputs(const gemmepi__sm90_params&p,Buffers&buffers,int column,int row,int item){\nconstexpr int moved_d=COPIES_D?0:OUTPUT_D,moved_aux=COPIES_AUX?0:OUTPUTS - OUTPUT_D;\nif(moved_d||moved_aux)\nshow_to_tma();\n__syncwarp();\nif((moved_d||moved_aux)&&is_elected()){\n"
"u32 from=outputs_of_box(buffers);\n#pragma unroll\nfor(int half=0;half<moved_d;half++)\nstore_output(p.d,from + half*BOX_BYTES,column,row,half,item);\n#pragma unroll\nfor(int half=0;half<moved_aux;half++)\nstore_output(p.aux,from +(half + OUTPUT_D)*BOX_BYTES,column,row,half,item);\n"
"commit_stores();\n}\n#pragma unroll\nfor(int half=0;half<(COPIES_D?OUTPUT_D:0);half++)\ncopy_matrix<GEMMEPI_D_TYPE>(p.epilogue,p.epilogue.d,outputs_of_box(buffers)+ half*BOX_BYTES,column,row,half,item);\n#pragma unroll\nfor(int half=0;half<(COPIES_AUX?OUTPUTS - OUTPUT_D:0);half++)\n"
"copy_matrix<GEMMEPI_AUX_TYPE>(p.epilogue,p.epilogue.aux,outputs_of_box(buffers)+(half + OUTPUT_D)*BOX_BYTES,column,\nrow,half,item);\nbuffers.turn=buffers.turn + 1==OUTPUT_BUFFERS?0:buffers.turn + 1;\n}\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_sm90_column_sums_cuh[] = {
"#line 1 \"src/kernels/sm90/column_sums.cuh\"\n\n\n\n#pragma once\n#include \"sm90/barriers.cuh\"\n#include \"sm90/schedule.cuh\"\n\n\n\ntypedef Column_sums<(GEMMEPI_EXACT||(GATED?UPSTREAM&&GEMMEPI_APPLIED: !GEMMEPI_APPLIED))>Box_sums[BOX_GROUPS];\n\n\n"
"__device__ inline void leave_column_sums(const Shared&shared,u32 warpgroup,u32 thread,int first_group,const Box_sums&sums){\n#pragma unroll\nfor(int g=0;g<BOX_GROUPS;g++){\nint unit=(first_group + g)/UNIT_GROUPS,i=(first_group + g)%UNIT_GROUPS;\nif(i==0)\n"
"barrier_wait(shared.slot_empty(warpgroup),unit%2 ^ 1);\n#pragma unroll\nfor(int half=0;half<HALVES_OUT;half++)\nasm volatile(\"st.shared.f32 [%0], %1;\" ::\"r\"(shared.slot(warpgroup,thread,i,half)),\"f\"(sums[g].sum(half))\n: \"memory\");\nif(i + 1==UNIT_GROUPS){\n__syncwarp();\n"
"if(thread%32==0)\nbarrier_arrive_here(shared.slot_full(warpgroup));\n}\n}\n}\n\n\n__device__ inline Acc*line_of_sums(const gemmepi__sm90_params&params,const Tile&tile,int half){\nconst gemmepi__epilogue_params&p=params.epilogue;\n"
"return(Acc*)p.partials +(((long long)tile.item*p.row_tiles + tile.m)*HALVES_OUT + half)*p.n;\n}\n__device__ inline Acc sum_of_warps(Acc first,Acc second,Acc third,Acc fourth){\nreturn(first + second)+(third + fourth);\n}\n\n\n"
"__device__ inline void add_slot(const gemmepi__sm90_params&p,const Shared&shared,u32 warpgroup,const Tile&tile,int unit,\nbool exists){\n#pragma unroll\nfor(int i=0;i<UNIT_GROUPS*HALVES_OUT;i++){\nint half=i/UNIT_GROUPS,of_unit=i%UNIT_GROUPS;\n"
"int column=tile.n*TILE_COLUMNS +(unit*UNIT_GROUPS + of_unit)*GROUP + Column_sums<false>::column();\nAcc sums[4];\n#pragma unroll\nfor(int warp=0;warp<4;warp++)\nasm volatile(\"ld.shared.f32 %0, [%1];\"\n: \"=f\"(sums[warp])\n: \"r\"(shared.slot(warpgroup,warp*32 + threadIdx.x%32,of_unit,half))\n"
": \"memory\");\nif(exists&&column<(int)p.epilogue.n)\nline_of_sums(p,tile,half)[column]=sum_of_warps(sums[0],sums[1],sums[2],sums[3]);\n}\n}\n\n\n__device__ inline void add_column_sums(const gemmepi__sm90_params&p,const Shared&shared,const Work&work){\n"
"u32 warpgroup=__shfl_sync(0xffffffffu,threadIdx.x/32 - 1,0);\n#pragma unroll 1\nfor(u32 t=work.first + warpgroup*work.step;t + work.step<p.tiles;t +=CONSUMERS*work.step){\nTile tile=tile_of(p,t,work.rank);\nbool exists=tile.m*TILE_M<(int)p.epilogue.m;\n#pragma unroll 1\n"
"for(int unit=0;unit<GROUPS/UNIT_GROUPS;unit++){\nbarrier_wait(shared.slot_full(warpgroup),unit%2);\nadd_slot(p,shared,warpgroup,tile,unit,exists);\n__syncwarp();\nif(threadIdx.x%32==0)\nbarrier_arrive_here(shared.slot_empty(warpgroup));\n}\n}\n}\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_sm90_columns_cuh[] = {
"#line 1 \"src/kernels/sm90/columns.cuh\"\n\n#pragma once\n#include \"sm90/schedule.cuh\"\n#include \"sm90/wgmma.cuh\"\n\ntemplate<int Groups>\n__device__ inline void load_groups(const gemmepi__sm90_params&p,const Tile&tile,int first_group,\nOf_columns(&columns)[Groups]){\n#pragma unroll\n"
"for(int i=0;i<Groups;i++){\nlong long column=tile.n*TILE_COLUMNS + lane_of_row()*2 +(first_group + i)*GROUP;\ncolumns[i]=load_columns(p.epilogue,tile.item,column,columns_left(p,tile,first_group + i));\n}\n}\n\n\n"
"__device__ inline void begin_sums(const Of_columns(&bias)[GROUPS],float(&sums)[PARTS][TILE_N/2]){\nif constexpr(!BIAS_FIRST){\nbegin_sums(sums);\n}else{\n#pragma unroll\nfor(int i=0;i<HALVES_IN*GROUPS;i++){\nint half=i/GROUPS,group=i%GROUPS;\nAcc values[RUN];\n"
"to_accs(bias[group].bias[half],values);\n\n#pragma unroll\nfor(int j=0;j<(sizeof(GEMMEPI_BIAS_TYPE)==4&& !ALIGNED?RUN:0);j++)\nasm volatile(\"add.f32 %0, %0, 0f80000000;\" : \"+f\"(values[j]));\n#pragma unroll\nfor(int j=0;j<PARTS*2*RUN;j++)\n"
"sums[j/(2*RUN)][(half*TILE_COLUMNS + group*GROUP)/2 + j%(2*RUN)]=\nvalues[j%(2*RUN)/4*2 + j%2];\n}\n}\n}\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_sm90_consume_cuh[] = {
"#line 1 \"src/kernels/sm90/consume.cuh\"\n\n#pragma once\n#include \"sm90/multiply.cuh\"\n#include \"sm90/split_k.cuh\"\n\n\n\n\ntemplate<int Groups>struct Rows{\nconst Tile&tile;\nint first,part;\nconst Masks&masks;\nOf_columns(&columns)[Groups];\n};\n\n\nstruct Next_tile{\nconst Work&work;\n"
"u32 count;\nOf_columns(&bias)[GROUPS];\n};\n\n\ntemplate<bool IsLast,int Groups,int Parts>\n__device__ inline void finish_boxes(const gemmepi__sm90_params&p,const Warpgroup&mine,const Finisher&finisher,\nconst Rows<Groups> &rows,const Next_tile&following,float(&sums)[Parts][TILE_N/2]){\n"
"const Shared&shared=mine.pipeline.shared;\nconst Tile&tile=rows.tile;\nconstexpr bool rolls=ROLLS||IsLast,has_all=ALL_AHEAD&& !IsLast;\n#pragma unroll rolls ? 1 : GROUPS\nfor(int i=0;i<GROUPS;i +=BOX_GROUPS){\nOf_columns now[BOX_GROUPS];\nBox_sums column_sums;\nif(!AHEAD&& !BIAS_FIRST)\n"
"load_groups(p,tile,i,rows.columns);\nbool is_end=i + BOX_GROUPS==GROUPS;\nif(!IsLast&&BIAS_FIRST&&is_end&&following.count + TURNS<mine.tiles)\nload_groups(p,nth_tile(p,following.work,following.count + TURNS),0,following.bias);\nmemcpy(now,rows.columns +(has_all?i:0),sizeof now);\n"
"if(AHEAD&& !has_all&&i + BOX_GROUPS<GROUPS)\nload_groups(p,tile,i + BOX_GROUPS,rows.columns);\n#pragma unroll\nfor(int part=0;part<Parts;part++){\nSums_of_box box=sums_of_box(sums[part],rolls?0:i);\nNext_box next={part + 1<Parts||i + BOX_GROUPS<GROUPS,rows.first +(part + 1<Parts?part + 1:0)*64,\n"
"part + 1<Parts?i:i + BOX_GROUPS};\nfinish_box(p,finisher,{tile,rows.first + part*64,rows.part + part,i,now,rows.masks,box,next},column_sums);\nif(HAS_BGRAD&&IsLast)\ncolumns_parked_in(shared.a(0),mine.pipeline.stage).park(rows.part,mine.thread,i,column_sums);\nif(rolls)\n"
"drop_first_box(sums[part]);\n}\nif(HAS_BGRAD&& !IsLast)\nleave_column_sums(shared,mine.which,mine.thread,i,column_sums);\n}\n}\n\n\n\n\n__device__ inline void part_of_last_tile(const gemmepi__sm90_params&p,const Shared&shared,Warpgroup&mine,\n"
"const Finisher&finisher,const Next_tile&following,bool ends){\nTile tile=nth_tile(p,following.work,following.count);\nint part=ends,first_row=tile.m*TILE_M +(int)(mine.thread/32)*16,row=first_row + part*64;\nfloat kept[1][TILE_N/2];\nOf_columns columns[BOX_GROUPS];\n"
"ask_for_inputs(p,finisher.buffers,tile,row,0);\nMasks masks=load_masks(p,tile,first_row);\nif(AHEAD)\nload_groups(p,tile,0,columns);\nif(ends){\nfloat sums[PARTS][TILE_N/2];\nbegin_sums(following.bias,sums);\nadd_up_last(shared,mine,sums,kept[0]);\n}else{\nstages_are_left(mine.blocks);\n"
"both_meet();\nread_parked(parked_in(shared.a(0),mine.pipeline.stage),mine.thread,kept[0]);\n}\nif(HAS_BGRAD)\nwarpgroup_meets(mine.which);\nfinisher.state=begin_epilogue(p.epilogue,tile.item,0,0);\nfinish_boxes<true,BOX_GROUPS>(p,mine,finisher,{tile,row,part,masks,columns},following,kept);\n"
"if(HAS_BGRAD){\nboth_meet();\nstore_parked_columns(p,tile,columns_parked_in(shared.a(0),mine.pipeline.stage));\n}\nend_epilogue(p.epilogue,finisher.state);\n}\n\n\n\n__device__ inline void consume(const gemmepi__sm90_params&p,const Shared&shared,const Work&work){\n\n"
"u32 which=__shfl_sync(0xffffffffu,threadIdx.x/WARPGROUP - 1,0),thread=threadIdx.x%WARPGROUP;\nu32 tiles=SPLIT>1?1:(p.tiles - work.first + work.step - 1)/work.step;\nint blocks=blocks_of_k(p,work.rank),first_part=PING_PONG?0:(int)which*PARTS;\n"
"Warpgroup mine={which,thread,tiles,first_part,blocks,Pipeline::of_reader(shared,thread,work.rank)};\nEpilogue_state state;\nBuffers buffers=buffers_of(shared);\nconst Finisher finisher={state,buffers};\n\n\nif(PING_PONG&&which==1){\nturn_give(0);\nmine.pipeline.skip(blocks);\n}\n"
"bool ends=SHARES_LAST&&(tiles - 1)%CONSUMERS==which;\nu32 count=PING_PONG?which:0;\nOf_columns bias[GROUPS];\n\n\nif(BIAS_FIRST&&count<tiles)\nload_groups(p,nth_tile(p,work,count),0,bias);\nfor(;count<tiles - ends;count +=TURNS){\nTile tile=nth_tile(p,work,count);\nfloat sums[PARTS][TILE_N/2];\n"
"Of_columns columns[ALL_AHEAD?GROUPS:BOX_GROUPS];\nbegin_sums(bias,sums);\n",
"int row=tile.m*TILE_M + first_part*64 +(int)(thread/32)*16;\nMasks masks;\nif(SPLIT==1){\nask_for_inputs(p,buffers,tile,row,0);\nmasks=load_masks(p,tile,row);\n}\nif(AHEAD)\nload_groups(p,tile,0,columns);\nadd_up_tile(shared,mine,sums);\nstate=begin_epilogue(p.epilogue,tile.item,0,0);\n"
"if(SPLIT>1)\nexchange_sums(p,finisher,tile,shared,work.rank,sums[0]);\nelse\nfinish_boxes<false,ALL_AHEAD?GROUPS:BOX_GROUPS>(p,mine,finisher,{tile,row,0,masks,columns},\n{work,count,bias},sums);\nend_epilogue(p.epilogue,state);\n}\n\n\nif(SHARES_LAST)\n"
"part_of_last_tile(p,shared,mine,finisher,{work,tiles - 1,bias},ends);\nif(HAS_OUTPUTS)\nwait_for_stores<0>();\n}\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_sm90_load_cuh[] = {
"#line 1 \"src/kernels/sm90/load.cuh\"\n\n#pragma once\n#include \"sm90/pipeline.cuh\"\n#include \"sm90/schedule.cuh\"\n\n\n\n\n\nconstexpr bool TAILS=GEMMEPI_TAILS;\nconstexpr int A_LINES=TILE_M/CLUSTER_N,B_LINES=TILE_N/CLUSTER_M;\n"
"constexpr int B_BOX=B_LINES>TILE_COLUMNS?TILE_COLUMNS:B_LINES;\n\n\ntemplate<bool Rows>__device__ inline u32 tail_bytes(int left,int lines){\nint there=left<0?0:left<lines?left:lines;\nreturn(u32)(Rows?there:(there + 63)/64*64)*LINE;\n}\n"
"__device__ inline u32 stage_bytes(const gemmepi__sm90_params&p,const Tile&tile){\nu32 a=TAILS?tail_bytes<A_ROWS>((int)p.epilogue.m - tile.m*TILE_M,TILE_M):A_BYTES;\nu32 b=TAILS?HALVES_IN*tail_bytes<B_ROWS>((int)p.epilogue.n - tile.n*TILE_COLUMNS,TILE_COLUMNS):B_BYTES;\nreturn a + b;\n}\n\n\n\n\n"
"struct Sharers{\nu32 row,column;\nu16 of_a,of_b;\n};\n\nstruct Step{\nint block,k;\nint rows_left,columns_left;\nu32 full,a,b;\n};\n\n\ntemplate<int Lines,bool Multicast>\n__device__ inline void load_lines(const gemmepi__tensor_map&map,const gemmepi__tensor_map&tail,int left,u32 to,u32 barrier,\n"
"int x,int y,int item,u16 mask){\nif(!TAILS||left>=Lines)\nload_box<Multicast>(map,to,barrier,x,y,item,mask);\nelse if(left>0)\nload_box<Multicast>(tail,to,barrier,x,y,item,mask);\n}\n\n\n"
"__device__ inline void load_a(const gemmepi__sm90_params&p,const Step&step,const Sharers&with,int m,int item){\nif(A_ROWS){\nload_lines<A_LINES,(CLUSTER_N>1)>(p.a,p.a_tail,step.rows_left,step.a,step.full,step.k,m,item,with.of_a);\n}else{\n#pragma unroll\nfor(int i=0;i<A_LINES;i +=64)\n"
"if(!TAILS||i<step.rows_left)\nload_box<(CLUSTER_N>1)>(p.a,step.a + i*LINE,step.full,m + i,step.k,item,with.of_a);\n}\n}\n\n__device__ inline void load_b(const gemmepi__sm90_params&p,const Step&step,const Sharers&with,const Tile&tile,int item){\nif(B_ROWS){\n#pragma unroll\n"
"for(int i=0;i<B_LINES;i +=B_BOX){\nint line=(int)with.row*B_LINES + i;\nload_lines<B_BOX,(CLUSTER_M>1)>(p.b,p.b_tail,step.columns_left - line%TILE_COLUMNS,step.b + line*LINE,\nstep.full,step.k,column_of(p,tile,line),item,with.of_b);\n}\n}else{\n#pragma unroll\nfor(int i=0;i<TILE_N;i +=64)\n"
"if((i/64 + step.block)%CLUSTER_M==(int)with.row&&(!TAILS||i%TILE_COLUMNS<step.columns_left))\nload_box<(CLUSTER_M>1)>(p.b,step.b + i*LINE,step.full,column_of(p,tile,i),step.k,item,with.of_b);\n}\n}\n\n\n\n"
"__device__ inline void produce(const gemmepi__sm90_params&p,const Shared&shared,const Work&work){\nu32 row=SPLIT>1?0:work.rank%CLUSTER_M,column=SPLIT>1?0:work.rank/CLUSTER_M;\nu16 of_a=0,of_b=0;\nfor(int i=0;i<CLUSTER_N;i++)\nof_a|=(u16)(1<<(row + i*CLUSTER_M));\nfor(int i=0;i<CLUSTER_M;i++)\n"
"of_b|=(u16)(1<<(column*CLUSTER_M + i));\nconst Sharers with={row,column,of_a,of_b};\nPipeline pipeline=Pipeline::of_loader(shared);\nfor(u32 t=work.first;t<p.tiles;t +=work.step){\nTile tile=tile_of(p,t,work.rank);\nasm volatile(\"\" : \"+r\"(tile.m),\"+r\"(tile.n),\"+r\"(tile.item));\n"
"if(t==work.first)\nafter_launches_before();\nint m=tile.m*TILE_M +(int)with.column*A_LINES;\nint a_item=p.a_items?(int)tile.item:0,b_item=p.b_items?(int)tile.item:0;\nfor(int block=begin_of_k(p,work.rank);block<end_of_k(p,work.rank);block++){\nif(TAILS)\n"
"asm volatile(\"\" : \"+r\"(m),\"+r\"(tile.m),\"+r\"(tile.n));\nStep step={block,\nblock*TILE_K,\n(int)p.epilogue.m - m,\n(int)p.epilogue.n - tile.n*TILE_COLUMNS,\nshared.full(pipeline.stage),\nshared.a(pipeline.stage)+ with.column*A_LINES*LINE,\nshared.b(pipeline.stage)};\n"
"pipeline.wait_empty();\nbarrier_expect(step.full,stage_bytes(p,tile));\nload_a(p,step,with,m,a_item);\nload_b(p,step,with,tile,b_item);\npipeline.advance();\n}\n}\n}\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_sm90_mask_cuh[] = {
"#line 1 \"src/kernels/sm90/mask.cuh\"\n\n#pragma once\n#include \"sm90/schedule.cuh\"\n\n\nconstexpr int MASK_WORDS=TILE_COLUMNS/32;\nstruct alignas(MASK_WORDS==4?16:8)Masks{\nu32 words[MASK_WORDS];\n};\n\n"
"__device__ inline Masks load_masks(const gemmepi__sm90_params&params,const Tile&tile,int row){\nconst gemmepi__epilogue_params&p=params.epilogue;\nMasks masks={};\nint column=tile.n*TILE_COLUMNS;\nrow +=(int)threadIdx.x%32/16*64 + threadIdx.x%16;\nif(!LOADS_MASK||row>=(int)p.m)\nreturn masks;\n"
"const u8*bytes=(const u8*)p.aux.data + offset(p.aux,tile.item,row,column)/8;\nif(column + TILE_COLUMNS<=(int)p.n)\nmasks= *reinterpret_cast<const Masks*>(bytes);\nelse\n#pragma unroll\nfor(int i=0;i<MASK_WORDS*4;i++)\nif(column + i*8<(int)p.n)\nmasks.words[i/4]|=(u32)bytes[i]<<i%4*8;\n"
"return masks;\n}\n\n__device__ inline u32 mask_of(const Masks&masks,int part,int half,int group){\nu32 word=masks.words[0];\n#pragma unroll\nfor(int i=1;i<MASK_WORDS;i++)\nword=group==i?masks.words[i]:word;\nreturn __shfl_sync(0xffffffffu,word,part*16 + half*8 +(int)threadIdx.x%32/4);\n}\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_sm90_multiply_cuh[] = {
"#line 1 \"src/kernels/sm90/multiply.cuh\"\n\n#pragma once\n#include \"sm90/parked.cuh\"\n#include \"sm90/pipeline.cuh\"\n#include \"sm90/wgmma.cuh\"\n\n\nstruct Warpgroup{\nu32 which,thread,tiles;\nint first_part;\nint blocks;\nPipeline pipeline;\n};\n\n\n"
"__device__ inline void multiply_part(u64 a,u64 b,int step,int part,int adds,float(&sums)[PARTS][TILE_N/2]){\nmultiply(sums[part],a + part*(LINES_64>>4)+ step*STEP<A_ROWS>,b + step*STEP<B_ROWS>,\nstep>0||BIAS_FIRST?1:adds);\n}\n\n\n"
"__device__ inline void add_up(const Shared&shared,Pipeline&pipeline,int first_part,int blocks,\nfloat(&sums)[PARTS][TILE_N/2]){\nu32 last=0,adds=0;\n#pragma unroll 1\ndo{\nu64 a=descriptor(shared.a(pipeline.stage)+ first_part*LINES_64),b=descriptor(shared.b(pipeline.stage));\n"
"pipeline.wait_full();\nmultiply_begin();\n#pragma unroll\nfor(int step=0;step<STEPS;step++)\n#pragma unroll\nfor(int part=0;part<PARTS;part++)\nmultiply_part(a,b,step,part,adds,sums);\nmultiply_commit();\nmultiply_wait<1>();\npipeline.release(last,adds);\n"
"asm volatile(\"mov.u32 %0, 1;\" : \"=r\"(adds));\nlast=pipeline.stage;\npipeline.advance();\n}while(--blocks);\n}\n\n\n__device__ inline void add_up_tile(const Shared&shared,Warpgroup&mine,float(&sums)[PARTS][TILE_N/2]){\nif(PING_PONG)\nturn_wait(mine.which);\n"
"add_up(shared,mine.pipeline,mine.first_part,mine.blocks,sums);\nif(PING_PONG)\nturn_give(1 - mine.which);\nmultiply_wait<0>();\n#pragma unroll\nfor(int part=0;part<PARTS;part++)\nsums_are_there(sums[part]);\nmine.pipeline.release(mine.pipeline.last());\nif(PING_PONG)\n"
"mine.pipeline.skip(mine.blocks);\n}\n\n\n\n\n\nconstexpr int LAST_BLOCKS=STAGES -(int)PARKED_STAGES;\nstatic_assert(!SHARES_LAST||LAST_BLOCKS>0,\"the stages have room\");\n\n\n\n__device__ inline void stages_are_left(int blocks){\nif(blocks<STAGES)\nboth_meet();\n}\n\n\n\n"
"__device__ inline void add_up_in_turn(const Shared&shared,Pipeline&pipeline,u32 adds,float(&sums)[PARTS][TILE_N/2]){\nconst Pipeline first=pipeline;\n#pragma unroll\nfor(int part=0;part<PARTS;part++){\nu32 add=adds;\npipeline=first;\n#pragma unroll\nfor(int block=0;block<LAST_BLOCKS;block++){\n"
"u64 a=descriptor(shared.a(pipeline.stage)),b=descriptor(shared.b(pipeline.stage));\nif(part==0)\npipeline.wait_full();\nmultiply_begin();\n#pragma unroll\nfor(int step=0;step<STEPS;step++)\nmultiply_part(a,b,step,part,add,sums);\nadd=1;\npipeline.advance();\n}\nmultiply_commit();\n}\n"
"multiply_wait<1>();\n}\n\n\n__device__ inline void add_up_last(const Shared&shared,Warpgroup&mine,float(&sums)[PARTS][TILE_N/2],\nfloat(&kept)[TILE_N/2]){\nPipeline&pipeline=mine.pipeline;\nint blocks=mine.blocks,in_turn=blocks<LAST_BLOCKS?0:LAST_BLOCKS;\nturn_wait(mine.which);\n"
"if(in_turn<blocks)\nadd_up(shared,pipeline,0,blocks - in_turn,sums);\nif(in_turn)\nadd_up_in_turn(shared,pipeline,in_turn<blocks,sums);\nelse\nmultiply_wait<0>();\nsums_are_there(sums[0]);\nif(SUMMED)\nmeet_summers();\nstages_are_left(blocks);\nwarpgroup_meets(mine.which);\n"
"park(parked_in(shared.a(0),pipeline.stage),mine.thread,sums[0]);\nboth_meet();\nmultiply_wait<0>();\nsums_are_there(sums[PARTS - 1]);\nmemcpy(kept,sums[PARTS - 1],sizeof kept);\n}\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_sm90_options_cuh[] = {
"#line 1 \"src/kernels/sm90/options.cuh\"\n\n#pragma once\n\n#define GEMMEPI_SPREAD 1\n#include \"epilogue.cuh\"\n\n\n\n#ifndef GEMMEPI_TILE_M\n#define GEMMEPI_TILE_M     128\n#define GEMMEPI_TILE_N     128\n#define GEMMEPI_STAGES     5\n#define GEMMEPI_BUFFERS    1\n#define GEMMEPI_PING_PONG  1\n"
"#define GEMMEPI_CLUSTER_M  2\n#define GEMMEPI_CLUSTER_N  1\n#define GEMMEPI_SPLIT      1\n#define GEMMEPI_A_ROWS     1\n#define GEMMEPI_B_ROWS     1\n#define GEMMEPI_OPERANDS   \"bf16\"\n#define GEMMEPI_ELEMENT    2\n#define GEMMEPI_BOX_GROUPS 2\n#define GEMMEPI_TAILS      0\n#endif\n"
"#ifndef GEMMEPI_BIAS_AHEAD\n#define GEMMEPI_BIAS_AHEAD 0\n#endif\n#ifndef GEMMEPI_ELECTS\n#define GEMMEPI_ELECTS     1\n#endif\n#ifndef GEMMEPI_SUMMED\n#define GEMMEPI_SUMMED     0\n#endif\n#ifndef GEMMEPI_SUMS_TYPE\n#define GEMMEPI_SUMS_TYPE  F32\n#define GEMMEPI_SUMS_ADD   0\n#endif\n\n\n\n"
"constexpr int COMPILER=__CUDACC_VER_MAJOR__*100 + __CUDACC_VER_MINOR__;\nconstexpr bool PING_PONG=GEMMEPI_PING_PONG;\nconstexpr int WARPGROUP=128,CONSUMERS=2,THREADS=WARPGROUP*(CONSUMERS + 1);\nconstexpr int WARPS=CONSUMERS*4;\nconstexpr u32 TURNS=PING_PONG?CONSUMERS:1;\n"
"constexpr int SUMMED=GEMMEPI_SUMMED,SUMMERS=SUMMED?3:0;\n\n\n\nconstexpr int TILE_M=GEMMEPI_TILE_M,TILE_N=GEMMEPI_TILE_N;\nconstexpr int CLUSTER_M=GEMMEPI_CLUSTER_M,CLUSTER_N=GEMMEPI_CLUSTER_N,SPLIT=GEMMEPI_SPLIT;\nconstexpr int CLUSTER=CLUSTER_M*CLUSTER_N*SPLIT;\n"
"constexpr int PARTS=TILE_M/64/(PING_PONG?1:CONSUMERS);\n\nconstexpr int TILE_COLUMNS=TILE_N/HALVES_IN;\nconstexpr int GROUP=32,GROUPS=TILE_COLUMNS/GROUP;\nstatic_assert(SPLIT==1||(!PING_PONG&&CLUSTER_M*CLUSTER_N==1),\"a cluster is one tile's\");\n\n\n\nconstexpr int STAGES=GEMMEPI_STAGES;\n"
"constexpr bool A_ROWS=GEMMEPI_A_ROWS,B_ROWS=GEMMEPI_B_ROWS;\nconstexpr int LINE=128,TILE_K=LINE/GEMMEPI_ELEMENT;\nconstexpr int LINES_64=64*LINE;\nconstexpr u32 A_BYTES=TILE_M*LINE,B_BYTES=TILE_N*LINE,STAGE_BYTES=A_BYTES + B_BYTES;\n"
"static_assert(GEMMEPI_ELEMENT==2||(A_ROWS&&B_ROWS&& !SUMMED),\"wgmma takes wider elements along k alone\");\n\n\n\nconstexpr int BOX_GROUPS=GEMMEPI_BOX_GROUPS,BOX_COLUMNS=BOX_GROUPS*GROUP;\nconstexpr int BOX_BYTES=16*LINE;\n"
"static_assert(TILE_COLUMNS%BOX_COLUMNS==0,\"tiles are of whole boxes\");\n\nconstexpr int INPUT_AUX=LOADS_AUX?HALVES_SAVED:0;\nconstexpr int INPUTS=INPUT_AUX +(LOADS_RESIDUAL?HALVES_OUT:0),INPUT_BUFFERS=INPUTS?2:0;\n\n\n"
"constexpr bool IN_PLACE=(GATED||LOADS_RESIDUAL)&&STAGES_D&& !COPIES_D&&INPUT_AUX==HALVES_OUT;\n\nconstexpr bool HAS_OUTPUTS=STAGES_D||STAGES_AUX;\nconstexpr int OUTPUT_D=STAGES_D?HALVES_OUT:0,OUTPUT_BUFFERS=GEMMEPI_BUFFERS;\n"
"constexpr int OUTPUTS=(IN_PLACE?0:OUTPUT_D)+(STAGES_AUX?HALVES_IN:0);\n\n\n\n\nconstexpr bool AHEAD= !BIAS_FIRST&&SPLIT==1&&PARTS*TILE_N<=256&&GEMMEPI_APPLIED&& !(GATED&&WRITES_AUX);\nconstexpr bool ALL_AHEAD=GEMMEPI_BIAS_AHEAD;\n\nconstexpr bool SHARES_LAST=PING_PONG&&PARTS==2;\n\n\n"
"constexpr bool ROLLS=HAS_BGRAD?GATED||ACTIVATION==GELU_ERF||BOX_GROUPS==1||(ACTIVATION==ELU&&COMPILER>=1300)\n:COMPILER<1300&&BOX_GROUPS==1&&GATED&&WRITES_AUX&&ACTIVATION==MISH;\nstatic_assert(!ALL_AHEAD||(AHEAD&& !ROLLS),\"a box's bias is found by a constant\");\n\n"
"constexpr int UNIT_GROUPS=GATED?1:2;\nstatic_assert(!HAS_BGRAD||(SHARES_LAST&& !SUMMED&&GROUPS/UNIT_GROUPS%2==0),\n\"a warp of its own for each warpgroup's sums, and the same parity for each tile\");\n\n\n\n\n\nconstexpr bool NEEDS_REGISTERS=\n!SUMMED&&(TILE_N==192||(HAS_BGRAD&& !LOADS_MASK)||\n"
"(TILE_N==128&&GATED&&(((WRITES_AUX||BACKWARD)&& !GEMMEPI_APPLIED)||__CUDACC_VER_MAJOR__<13)));\nconstexpr int PRODUCER_REGISTERS=NEEDS_REGISTERS?24:40,CONSUMER_REGISTERS=NEEDS_REGISTERS?240:232;\n"
"static_assert(PRODUCER_REGISTERS + CONSUMERS*CONSUMER_REGISTERS<=504,\"setmaxnreg waits for ever\");\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_sm90_parked_cuh[] = {
"#line 1 \"src/kernels/sm90/parked.cuh\"\n\n\n\n\n#pragma once\n#include \"sm90/box.cuh\"\n\n\n\nconstexpr u32 PART_BYTES=64*TILE_N*4;\nconstexpr u32 FOURS=WARPGROUP*16;\nconstexpr u32 PARKED_STAGES=(PART_BYTES + STAGE_BYTES - 1)/STAGE_BYTES;\n"
"static_assert(!SHARES_LAST||(PARKED_STAGES<=2&&STAGE_BYTES%FOURS==0),\"the stages have room\");\n\n\nstruct Parked{\nu32 first,rest;\n\n__device__ inline u32 at(u32 four,u32 thread)const{\nu32 offset=four*FOURS;\nreturn(offset<STAGE_BYTES?first + offset:rest +(offset - STAGE_BYTES))+ thread*16;\n"
"}\n};\n\n__device__ inline Parked parked_in(u32 stages,u32 stage){\nreturn{stages + stage*STAGE_BYTES,stages +(stage + 1==STAGES?0:stage + 1)*STAGE_BYTES};\n}\n\n__device__ inline void park(const Parked&parked,u32 thread,const float(&sums)[TILE_N/2]){\n#pragma unroll\n"
"for(int i=0;i<TILE_N/8;i++)\nasm volatile(\"st.shared.v4.f32 [%0], {%1, %2, %3, %4};\" ::\"r\"(parked.at(i,thread)),\"f\"(sums[i*4]),\n\"f\"(sums[i*4 + 1]),\"f\"(sums[i*4 + 2]),\"f\"(sums[i*4 + 3])\n: \"memory\");\n}\n"
"__device__ inline void read_parked(const Parked&parked,u32 thread,float(&sums)[TILE_N/2]){\n#pragma unroll\nfor(int i=0;i<TILE_N/2;i +=4)\nasm volatile(\"ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\"\n: \"=f\"(sums[i]),\"=f\"(sums[i + 1]),\"=f\"(sums[i + 2]),\"=f\"(sums[i + 3])\n"
": \"r\"(parked.at(i/4,thread))\n: \"memory\");\n}\n\n\n\n\n\nstatic_assert(!HAS_BGRAD||(PARKED_STAGES==1&&HALVES_OUT*BOX_COLUMNS*4<=FOURS/4),\"a warp's four are as much\");\nstruct Parked_columns{\nu32 of_first,of_second;\n\n__device__ inline u32 at(u32 part,u32 thread,int group,int half)const{\n"
"return(part?of_second:of_first)+ group/BOX_GROUPS*BOX_GROUPS*4*FOURS + thread/32*(FOURS/4)+\n((half*BOX_GROUPS + group%BOX_GROUPS)*32 + thread%32)*4;\n}\n__device__ inline void park(u32 part,u32 thread,int group,const Box_sums&sums)const{\n#pragma unroll\n"
"for(int i=0;i<BOX_GROUPS*HALVES_OUT;i++)\nasm volatile(\"st.shared.f32 [%0], %1;\" ::\"r\"(at(part,thread,group + i/HALVES_OUT,i%HALVES_OUT)),\n\"f\"(sums[i/HALVES_OUT].sum(i%HALVES_OUT))\n: \"memory\");\n}\n\n__device__ inline Acc sum(u32 lane,int group,int half)const{\nAcc of[4];\n"
"#pragma unroll\nfor(u32 warp=0;warp<4;warp++){\nAcc first,second;\nasm volatile(\"ld.shared.f32 %0, [%1];\" : \"=f\"(first): \"r\"(at(0,warp*32 + lane,group,half)): \"memory\");\nasm volatile(\"ld.shared.f32 %0, [%1];\" : \"=f\"(second): \"r\"(at(1,warp*32 + lane,group,half)): \"memory\");\n"
"of[warp]=first + second;\n}\nreturn sum_of_warps(of[0],of[1],of[2],of[3]);\n}\n};\n__device__ inline Parked_columns columns_parked_in(u32 stages,u32 stage){\nreturn{parked_in(stages,stage).first,parked_in(stages,stage).rest};\n}\n\n"
"__device__ inline void store_parked_columns(const gemmepi__sm90_params&p,const Tile&tile,const Parked_columns&parked){\nif(tile.m*TILE_M>=(int)p.epilogue.m)\nreturn;\nfor(int warp=(int)threadIdx.x/32 - 4;warp<HALVES_OUT*GROUPS;warp +=CONSUMERS*4){\nint half=warp/GROUPS,group=warp%GROUPS;\n"
"int column=tile.n*TILE_COLUMNS + group*GROUP + Column_sums<false>::column();\nif(column<(int)p.epilogue.n)\nline_of_sums(p,tile,half)[column]=parked.sum(threadIdx.x%32,group,half);\n}\n}\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_sm90_pipeline_cuh[] = {
"#line 1 \"src/kernels/sm90/pipeline.cuh\"\n\n#pragma once\n#include \"sm90/barriers.cuh\"\n\n\n__device__ inline u32 told_by(u32 thread,u32 rank){\nu32 row=rank%CLUSTER_M,column=rank/CLUSTER_M,other=thread - CLUSTER_N;\nreturn SPLIT>1            ?rank\n:thread<CLUSTER_N?row + thread*CLUSTER_M\n"
":column*CLUSTER_M +(other>=row?other + 1:other);\n}\n\n\nstruct Pipeline{\nShared shared;\nu32 parity,stage;\nbool tells;\nu32 told;\n\n__device__ static inline Pipeline of_loader(const Shared&shared){\nreturn{shared,1,0,false,0};\n}\n\n"
"__device__ static inline Pipeline of_reader(const Shared&shared,u32 thread,u32 rank){\nbool tells=thread<TELLERS;\nu32 block=told_by(thread,rank);\nreturn{shared,0,0,tells,address_in(shared.empty(0),tells?block:rank)};\n}\n\n__device__ inline void wait_full()const{\n"
"barrier_wait(shared.full(stage),parity);\n}\n__device__ inline void wait_empty()const{\nbarrier_wait(shared.empty(stage),parity);\n}\n\n__device__ inline void release(u32 which,bool does=true)const{\nif(tells&&does)\nbarrier_arrive(told + which*8);\n}\n__device__ inline u32 last()const{\n"
"return stage?stage - 1:STAGES - 1;\n}\n__device__ inline void advance(){\nif(++stage==STAGES)\nstage=0,parity ^=1;\n}\n\n__device__ inline void skip(int blocks){\nstage +=(u32)blocks;\nparity ^=stage/STAGES&1;\nstage%=STAGES;\n}\n};\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_sm90_ptx_cuh[] = {
"#line 1 \"src/kernels/sm90/ptx.cuh\"\n\n#pragma once\n#include \"sm90/options.cuh\"\n\n\n\n__device__ inline u32 shared_address(const void*p){\nreturn(u32)__cvta_generic_to_shared(p);\n}\n__device__ inline u32 cluster_rank(){\nu32 rank;\n"
"asm volatile(\"mov.u32 %0, %%cluster_ctarank;\" : \"=r\"(rank));\nreturn rank;\n}\n\n__device__ inline u32 address_in(u32 address,u32 rank){\nu32 there;\nasm(\"mapa.shared::cluster.u32 %0, %1, %2;\" : \"=r\"(there): \"r\"(address),\"r\"(rank));\nreturn there;\n}\n\n\n\n\n"
"__device__ inline bool is_elected(){\nu32 is=threadIdx.x%32==0;\nif(GEMMEPI_ELECTS)\nasm volatile(\"{\\n.reg .pred is;\\nelect.sync _|is, 0xffffffff;\\nselp.u32 %0, 1, 0, is;\\n}\" : \"=r\"(is));\nreturn is;\n}\n\n\n\n\n__device__ inline void cluster_barrier(){\n"
"asm volatile(\"barrier.cluster.arrive.release.aligned;\\nbarrier.cluster.wait.acquire.aligned;\" ::: \"memory\");\n}\n\n__device__ inline void cluster_meets(){\nasm volatile(\"barrier.cluster.arrive.relaxed.aligned;\\nbarrier.cluster.wait.aligned;\" ::: \"memory\");\n}\n\n\n\n"
"template<int Registers>__device__ inline void keep_registers(){\nasm volatile(\"setmaxnreg.dec.sync.aligned.u32 %0;\" ::\"n\"(Registers));\n}\ntemplate<int Registers>__device__ inline void take_registers(){\nasm volatile(\"setmaxnreg.inc.sync.aligned.u32 %0;\" ::\"n\"(Registers));\n}\n\n\n\n"
"__device__ inline void barrier_init(u32 barrier,u32 count){\nasm volatile(\"mbarrier.init.shared::cta.b64 [%0], %1;\" ::\"r\"(barrier),\"r\"(count): \"memory\");\n}\n__device__ inline void barriers_are_set(){\nasm volatile(\"fence.mbarrier_init.release.cluster;\" ::: \"memory\");\n}\n"
"__device__ inline void barrier_expect(u32 barrier,u32 bytes){\nasm volatile(\"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\" ::\"r\"(barrier),\"r\"(bytes): \"memory\");\n}\n\n__device__ inline void barrier_wait(u32 barrier,u32 parity){\nasm volatile(\"{\\n\"\n\".reg .pred done;\\n\"\n"
"\"again:\\n\"\n\"mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\\n\"\n\"@!done bra again;\\n\"\n\"}\" ::\"r\"(barrier),\n\"r\"(parity)\n: \"memory\");\n}\n\n__device__ inline void barrier_arrive(u32 barrier_there){\n"
"asm volatile(\"mbarrier.arrive.shared::cluster.b64 _, [%0];\" ::\"r\"(barrier_there): \"memory\");\n}\n__device__ inline void barrier_arrive_here(u32 barrier){\nasm volatile(\"mbarrier.arrive.shared::cta.b64 _, [%0];\" ::\"r\"(barrier): \"memory\");\n}\n\n\n\n"
"__device__ inline void prefetch_map(const gemmepi__tensor_map&map){\nasm volatile(\"prefetch.tensormap [%0];\" ::\"l\"(&map): \"memory\");\n}\n\ntemplate<bool Multicast>\n__device__ inline void load_box(const gemmepi__tensor_map&map,u32 to,u32 barrier,int x,int y,int item,u16 mask){\n"
"if(Multicast)\nasm volatile(\"cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster \"\n\"[%0], [%1, {%3, %4, %5}], [%2], %6;\" ::\"r\"(to),\n\"l\"(&map),\"r\"(barrier),\"r\"(x),\"r\"(y),\"r\"(item),\"h\"(mask)\n: \"memory\");\nelse\n"
"asm volatile(\"cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes \"\n\"[%0], [%1, {%3, %4, %5}], [%2];\" ::\"r\"(to),\n\"l\"(&map),\"r\"(barrier),\"r\"(x),\"r\"(y),\"r\"(item)\n: \"memory\");\n}\n\n"
"__device__ inline void load_input(const gemmepi__tensor_map&map,u32 to,u32 barrier,int column,int row,int half,int item){\nasm volatile(\"cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes \"\n\"[%0], [%1, {%3, %4, %5, %6}], [%2];\" ::\"r\"(to),\n"
"\"l\"(&map),\"r\"(barrier),\"r\"(column),\"r\"(row),\"r\"(half),\"r\"(item)\n: \"memory\");\n}\n\n__device__ inline void store_output(const gemmepi__tensor_map&map,u32 from,int column,int row,int half,int item){\n"
"asm volatile(\"cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];\" ::\"l\"(&map),\n\"r\"(from),\"r\"(column),\"r\"(row),\"r\"(half),\"r\"(item)\n: \"memory\");\n}\n\n__device__ inline void show_to_tma(){\n"
"asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");\n}\n",
"__device__ inline void commit_stores(){\nasm volatile(\"cp.async.bulk.commit_group;\" ::: \"memory\");\n}\n\ntemplate<int Left>__device__ inline void wait_for_stores(){\nasm volatile(\"cp.async.bulk.wait_group.read %0;\" ::\"n\"(Left): \"memory\");\n}\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_sm90_schedule_cuh[] = {
"#line 1 \"src/kernels/sm90/schedule.cuh\"\n\n#pragma once\n#include \"sm90/options.cuh\"\n\nstruct Tile{\nint m,n;\nu32 item;\n};\n\n\nstruct Work{\nu32 rank,first,step;\n};\n\n\n__device__ inline u32 first_tile(){\nu32 block;\nasm volatile(\"mov.u32 %0, %%ctaid.x;\" : \"=r\"(block));\n"
"return block/CLUSTER;\n}\n\n\n\n__device__ inline Tile tile_of(const gemmepi__sm90_params&p,u32 t,u32 rank){\nu32 of_item=p.cluster_rows*p.cluster_columns,item=t/of_item,rest=t - item*of_item;\nu32 of_band=p.band*p.cluster_columns,band=rest/of_band,first=band*p.band;\n"
"u32 height=p.cluster_rows - first<p.band?p.cluster_rows - first:p.band,within=rest - band*of_band;\nu32 column=within/height,row=first + within - column*height;\nu32 place=SPLIT>1?0:rank;\nreturn{(int)(row*CLUSTER_M + place%CLUSTER_M),(int)(column*CLUSTER_N + place/CLUSTER_M),item};\n}\n\n\n"
"__device__ inline Tile nth_tile(const gemmepi__sm90_params&p,const Work&work,u32 nth){\nreturn tile_of(p,work.first + nth*work.step,work.rank);\n}\n\n\n__device__ inline int begin_of_k(const gemmepi__sm90_params&p,u32 share){\n"
"return SPLIT>1?(int)((u32)((p.k + TILE_K - 1)/TILE_K)*share/SPLIT):0;\n}\n__device__ inline int end_of_k(const gemmepi__sm90_params&p,u32 share){\nreturn SPLIT>1?begin_of_k(p,share + 1):(p.k + TILE_K - 1)/TILE_K;\n}\n__device__ inline int blocks_of_k(const gemmepi__sm90_params&p,u32 share){\n"
"return end_of_k(p,share)- begin_of_k(p,share);\n}\n\n\n__device__ inline int column_of(const gemmepi__sm90_params&p,const Tile&tile,int line){\nint half=HALVES_IN==2&&line>=TILE_COLUMNS;\nreturn tile.n*TILE_COLUMNS + line - half*TILE_COLUMNS + half*(int)p.epilogue.n;\n}\n\n"
"__device__ inline int columns_left(const gemmepi__sm90_params&p,const Tile&tile,int group){\nreturn(int)p.epilogue.n - tile.n*TILE_COLUMNS - lane_of_row()*2 - group*GROUP;\n}\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_sm90_shared_cuh[] = {
"#line 1 \"src/kernels/sm90/shared.cuh\"\n\n#pragma once\n#include \"sm90/options.cuh\"\n\n\nconstexpr u32 SLOT_BYTES=UNIT_GROUPS*HALVES_OUT*WARPGROUP*4;\n\nstruct Shared{\nu32 first;\n\n\nstatic constexpr u32 STAGE=0;\nstatic constexpr u32 OUTPUT=STAGE + STAGES*STAGE_BYTES;\n"
"static constexpr u32 INPUT=OUTPUT + WARPS*OUTPUT_BUFFERS*OUTPUTS*BOX_BYTES;\nstatic constexpr u32 FULL=INPUT + WARPS*INPUT_BUFFERS*INPUTS*BOX_BYTES;\nstatic constexpr u32 EMPTY=FULL + STAGES*8;\nstatic constexpr u32 INPUT_FULL=EMPTY + STAGES*8;\n"
"static constexpr u32 RECEIVED=INPUT_FULL + WARPS*16;\n\nstatic constexpr u32 TOTALS=RECEIVED +(SPLIT>1?16:0);\nstatic constexpr u32 SLOTS=TOTALS;\nstatic constexpr u32 SLOT_FULL=SLOTS + CONSUMERS*SLOT_BYTES;\nstatic constexpr u32 SLOT_EMPTY=SLOT_FULL + CONSUMERS*8;\n"
"static constexpr u32 BYTES=SUMMED?TOTALS + SUMMERS*16*8:HAS_BGRAD?SLOT_EMPTY + CONSUMERS*8:TOTALS;\n\n__device__ inline u32 a(u32 stage)const{\nreturn first + stage*STAGE_BYTES;\n}\n__device__ inline u32 b(u32 stage)const{\nreturn first + stage*STAGE_BYTES + A_BYTES;\n}\n\n"
"__device__ inline u32 outputs()const{\nreturn first + OUTPUT +(threadIdx.x/32 - 4)*(OUTPUT_BUFFERS*OUTPUTS*BOX_BYTES);\n}\n__device__ inline u32 inputs()const{\nreturn first + INPUT +(threadIdx.x/32 - 4)*(INPUT_BUFFERS*INPUTS*BOX_BYTES);\n}\n\n"
"__device__ inline u32 total(int summer,int line)const{\nreturn first + TOTALS +(summer*16 + line)*8;\n}\n\n__device__ inline u32 slot(u32 warpgroup,u32 thread,int i,int half)const{\nreturn first + SLOTS + warpgroup*SLOT_BYTES +((half*UNIT_GROUPS + i)*WARPGROUP + thread)*4;\n}\n\n\n"
"__device__ inline u32 full(u32 stage)const{\nreturn first + FULL + stage*8;\n}\n__device__ inline u32 empty(u32 stage)const{\nreturn first + EMPTY + stage*8;\n}\n__device__ inline u32 input_full()const{\nreturn first + INPUT_FULL +(threadIdx.x/32 - 4)*16;\n}\n"
"__device__ inline u32 received()const{\nreturn first + RECEIVED;\n}\n__device__ inline u32 slot_full(u32 warpgroup)const{\nreturn first + SLOT_FULL + warpgroup*8;\n}\n__device__ inline u32 slot_empty(u32 warpgroup)const{\nreturn first + SLOT_EMPTY + warpgroup*8;\n}\n};\n#ifdef GEMMEPI_SHARED\n"
"static_assert(Shared::BYTES==GEMMEPI_SHARED,\"the host counts the same\");\n#endif\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_sm90_split_k_cuh[] = {
"#line 1 \"src/kernels/sm90/split_k.cuh\"\n\n\n\n\n#pragma once\n#include \"sm90/box.cuh\"\n\nstatic_assert(SPLIT==1||PARTS==1,\"a warp has 16 rows\");\nconstexpr u32 FOURS_OF_BOX=HALVES_IN*BOX_COLUMNS/8;\nconstexpr u32 SENT_BYTES=FOURS_OF_BOX*32*16,BOXES=WARPS*(GROUPS/BOX_GROUPS);\n"
"static_assert(SPLIT==1||(BOXES%SPLIT==0&&BOXES*SENT_BYTES<=STAGES*STAGE_BYTES),\"the stages have room for them\");\nconstexpr bool SENDS_ASYNC=COMPILER>=1201;\n\n\nstruct Box_counts{\nu32 rows,columns;\n};\n__device__ inline Box_counts boxes_of(const gemmepi__sm90_params&p,const Tile&tile){\n"
"u32 rows=(u32)p.epilogue.m - tile.m*TILE_M,columns=(u32)p.epilogue.n - tile.n*TILE_COLUMNS;\nreturn{((rows<TILE_M?rows:TILE_M)+ 15)/16,\n((columns<TILE_COLUMNS?columns:TILE_COLUMNS)+ BOX_COLUMNS - 1)/BOX_COLUMNS};\n}\n\n__device__ inline u32 received_at(u32 nth,u32 from){\n"
"return Shared::STAGE +(nth*SPLIT + from)*SENT_BYTES + threadIdx.x%32*16;\n}\n\n\n__device__ inline void send_box(u32 to,u32 received,const Sums_of_box&box){\n#pragma unroll\nfor(int j=0;j<FOURS_OF_BOX;j++){\nconst float*four=box.at[j/(BOX_COLUMNS/8)][j%(BOX_COLUMNS/8)];\nif(SENDS_ASYNC)\n"
"asm volatile(\"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];\" ::\"r\"(\nto + j*512),\n\"f\"(four[0]),\"f\"(four[1]),\"f\"(four[2]),\"f\"(four[3]),\"r\"(received)\n: \"memory\");\nelse\n"
"asm volatile(\"st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};\" ::\"r\"(to + j*512),\"f\"(four[0]),\"f\"(four[1]),\n\"f\"(four[2]),\"f\"(four[3])\n: \"memory\");\n}\n}\n__device__ inline void send_sums(const gemmepi__sm90_params&p,const Tile&tile,const Shared&shared,u32 rank,\n"
"const float(&sums)[TILE_N/2]){\nBox_counts boxes=boxes_of(p,tile);\nu32 row=threadIdx.x/32 - 4;\nif(SENDS_ASYNC&&threadIdx.x==WARPGROUP)\nbarrier_expect(shared.received(),(boxes.rows*boxes.columns + SPLIT - 1 - rank)/SPLIT*SPLIT*SENT_BYTES);\n#pragma unroll\n"
"for(int group=0;group<GROUPS;group +=BOX_GROUPS){\nu32 i=group/BOX_GROUPS*boxes.rows + row;\nShared there={address_in(shared.first,i%SPLIT)};\nu32 to=there.first + received_at(i/SPLIT,rank);\nSums_of_box box=sums_of_box(sums,group);\nif(row>=boxes.rows||group/BOX_GROUPS>=boxes.columns)\n"
"continue;\nsend_box(to,there.received(),box);\n}\n}\n\n\n__device__ inline void add_received(const Shared&shared,u32 nth,Sums_of_box&box){\nbox={};\n#pragma unroll 1\nfor(u32 block=0;block<SPLIT;block++)\n#pragma unroll\nfor(int j=0;j<FOURS_OF_BOX;j++){\n"
"float*four=box.at[j/(BOX_COLUMNS/8)][j%(BOX_COLUMNS/8)],x[4];\nasm volatile(\"ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\"\n: \"=f\"(x[0]),\"=f\"(x[1]),\"=f\"(x[2]),\"=f\"(x[3])\n: \"r\"(shared.first + received_at(nth,block)+ j*512)\n: \"memory\");\n#pragma unroll\nfor(int i=0;i<4;i++)\n"
"four[i]+=x[i];\n}\n}\n\n\n__device__ inline void finish_received(const gemmepi__sm90_params&p,const Finisher&finisher,const Tile&tile,\nconst Shared&shared,u32 rank){\nBox_counts boxes=boxes_of(p,tile);\nfor(u32 nth=threadIdx.x/32 - 4;nth*SPLIT + rank<boxes.rows*boxes.columns;nth +=WARPS){\n"
"u32 i=nth*SPLIT + rank;\nint group=(int)(i/boxes.rows)*BOX_GROUPS,row=tile.m*TILE_M +(int)(i%boxes.rows)*16;\nOf_columns columns[BOX_GROUPS];\nload_groups(p,tile,group,columns);\nask_for_inputs(p,finisher.buffers,tile,row,group);\nMasks masks=load_masks(p,tile,row);\nSums_of_box sums;\n"
"add_received(shared,nth,sums);\nBox_sums none;\nfinish_box(p,finisher,{tile,row,0,group,columns,masks,sums,{false,0,0}},none);\n}\n}\n\n\n__device__ inline void exchange_sums(const gemmepi__sm90_params&p,const Finisher&finisher,const Tile&tile,\n"
"const Shared&shared,u32 rank,const float(&sums)[TILE_N/2]){\ncluster_meets();\nsend_sums(p,tile,shared,rank,sums);\nif(SENDS_ASYNC)\nbarrier_wait(shared.received(),0);\nelse\ncluster_barrier();\nfinish_received(p,finisher,tile,shared,rank);\n}\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_sm90_totals_cuh[] = {
"#line 1 \"src/kernels/sm90/totals.cuh\"\n\n\n\n#pragma once\n#include \"sm90/pipeline.cuh\"\n#include \"sm90/schedule.cuh\"\n\nconstexpr bool SUMMED_ROWS=SUMMED==1?A_ROWS:B_ROWS;\nconstexpr int SUMMED_LINES=SUMMED==1?TILE_M:TILE_N;\n\n\n\n\n\nconstexpr int SLICES=SUMMED_LINES/16;\n\n\n"
"__device__ inline int slice_of(const gemmepi__sm90_params&p,const Tile&tile,int summer){\nint across=SUMMED==1?tile.n:tile.m,slice=across + summer*p.sum_tiles;\nreturn across<p.sum_tiles&&slice<SLICES?slice: -1;\n}\n\n\n\n\n\nconstexpr int SUMMED_AT_ONCE=64;\nstruct Slice_totals{\n"
"float at[SUMMED_ROWS?1:8],before[SUMMED_ROWS?1:8];\n};\n__device__ inline void keep_totals(Slice_totals&totals){\n#pragma unroll\nfor(int i=0;i<(SUMMED_ROWS?1:8);i++){\ntotals.before[i]+=totals.at[i];\ntotals.at[i]=0;\n}\n}\n\n\n\n__device__ inline u32 slice_lane(int slice){\n"
"u32 pair=threadIdx.x%32/2,half=threadIdx.x%2;\nu32 line=SUMMED_ROWS?slice*16 + pair:pair%4*2 + pair/4%2 + pair/8*8;\nu32 unit=SUMMED_ROWS?half*4:slice%4*2 + half;\nreturn(SUMMED==1?0:A_BYTES)+(SUMMED_ROWS?0:slice/4*LINES_64)+ line*LINE +((unit ^ line%8)<<4);\n}\n"
"__device__ inline u32 slice_at(u32 lane,int i){\nreturn SUMMED_ROWS?lane ^ i<<4:lane + i*16*LINE;\n}\n\n__device__ inline void to_floats(u32 word,float&low,float&high){\nif(GEMMEPI_OPERANDS[0]== 'b'){\nlow=__uint_as_float(word<<16);\nhigh=__uint_as_float(word&0xffff0000);\n}else{\n"
"asm(\"{\\n.reg .b16 low, high;\\nmov.b32 {low, high}, %2;\\ncvt.f32.f16 %0, low;\\ncvt.f32.f16 %1, high;\\n}\"\n: \"=f\"(low),\"=f\"(high)\n: \"r\"(word));\n}\n}\n\n__device__ inline void add_stage(u32 lane,Slice_totals&totals){\nu32 words[4][4];\n#pragma unroll\nfor(int i=0;i<4;i++)\n"
"asm volatile(\"ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];\"\n: \"=r\"(words[i][0]),\"=r\"(words[i][1]),\"=r\"(words[i][2]),\"=r\"(words[i][3])\n: \"r\"(slice_at(lane,i))\n: \"memory\");\nfloat parts[4]={};\n#pragma unroll\nfor(int i=0;i<4;i++)\n#pragma unroll\nfor(int j=0;j<4;j++){\n"
"float low,high;\nto_floats(words[i][j],low,high);\nif(SUMMED_ROWS){\nparts[j]+=low + high;\n}else{\ntotals.at[SUMMED_ROWS?0:j*2]+=low;\ntotals.at[SUMMED_ROWS?0:j*2 + 1]+=high;\n}\n}\nif(SUMMED_ROWS)\ntotals.at[0]+=(parts[0]+ parts[1])+(parts[2]+ parts[3]);\n}\n\n\n"
"__device__ inline int line_of_total(){\nint lane=threadIdx.x%32;\nreturn SUMMED_ROWS?(lane%2? -1:lane/2):(lane<16?lane%2*8 + lane/2: -1);\n}\n__device__ inline double total_of_slice(const Slice_totals&totals){\ndouble mine=0;\n#pragma unroll\nfor(int i=0;i<(SUMMED_ROWS?1:8);i++){\n"
"double total=(double)totals.before[i]+ totals.at[i];\n#pragma unroll\nfor(int lanes=SUMMED_ROWS?1:2;lanes<=(SUMMED_ROWS?1:16);lanes*=2)\ntotal +=__shfl_xor_sync(0xffffffffu,total,lanes);\nif(SUMMED_ROWS||threadIdx.x%32/2==i)\nmine=total;\n}\nreturn mine;\n}\n\n\n\n\n"
"__device__ inline void store_total_at(const gemmepi__sm90_params&p,u32 item,int at,double total){\nGEMMEPI_SUMS_TYPE*to=(GEMMEPI_SUMS_TYPE*)p.sums + item*p.sums_stride + at;\nif(GEMMEPI_SUMS_ADD)\ntotal +=to_acc<double>(*to);\n*to=from_acc<GEMMEPI_SUMS_TYPE>(total);\n}\n"
"__device__ inline void store_total(const gemmepi__sm90_params&p,const Tile&tile,int line,double total){\nint at=SUMMED==1?tile.m*TILE_M + line:column_of(p,tile,line);\nint left=SUMMED==1?(int)p.epilogue.m - at:(int)p.epilogue.n - tile.n*TILE_COLUMNS - line%TILE_COLUMNS;\nif(left>0)\n"
"store_total_at(p,tile.item,at,total);\n}\n\n\n__device__ inline void leave_total(const Shared&shared,int summer,double total){\nif(line_of_total()>=0)\nasm volatile(\"st.shared.f64 [%0], %1;\" ::\"r\"(shared.total(summer,line_of_total())),\"d\"(total): \"memory\");\n}\n"
"__device__ inline void store_totals(const gemmepi__sm90_params&p,const Shared&shared,const Tile&tile,int summer){\nint slice=slice_of(p,tile,summer);\ndouble total=0;\nif(slice<0||line_of_total()<0)\nreturn;\n#pragma unroll 1\nfor(int block=0;block<SPLIT;block++){\ndouble of_block;\n"
"asm volatile(\"ld.shared::cluster.f64 %0, [%1];\"\n: \"=d\"(of_block)\n",
": \"r\"(address_in(shared.total(summer,line_of_total()),block))\n: \"memory\");\ntotal +=of_block;\n}\nstore_total(p,tile,slice*16 + line_of_total(),total);\n}\n\n\n\n\n\n__device__ inline void add_operand(const gemmepi__sm90_params&p,const Shared&shared,const Work&work){\n"
"int summer=(int)__shfl_sync(0xffffffffu,threadIdx.x/32 - 1,0);\nPipeline pipeline=Pipeline::of_reader(shared,threadIdx.x%32,work.rank);\nint blocks=blocks_of_k(p,work.rank);\n#pragma unroll 1\nfor(u32 t=work.first;t<p.tiles;t +=work.step){\nint slice=slice_of(p,tile_of(p,t,work.rank),summer);\n"
"u32 lane=shared.first + slice_lane(slice<0?0:slice);\nSlice_totals totals={};\n#pragma unroll 1\nfor(int block=0;block<blocks;block++){\npipeline.wait_full();\nif(slice>=0)\nadd_stage(lane + pipeline.stage*STAGE_BYTES,totals);\nif(block%SUMMED_AT_ONCE==SUMMED_AT_ONCE - 1)\nkeep_totals(totals);\n"
"__syncwarp();\npipeline.release(pipeline.stage);\npipeline.advance();\n}\nif(slice<0)\ncontinue;\ndouble total=total_of_slice(totals);\nif(SPLIT>1)\nleave_total(shared,summer,total);\nelse if(line_of_total()>=0)\nstore_total(p,tile_of(p,t,work.rank),slice*16 + line_of_total(),total);\n}\n"
"if(SHARES_LAST)\nmeet_summers();\n}\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_sm90_wgmma_cuh[] = {
"#line 1 \"src/kernels/sm90/wgmma.cuh\"\n\n#pragma once\n#include \"sm90/options.cuh\"\n\n\n\n__device__ inline void multiply_begin(){\nasm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");\n}\n__device__ inline void multiply_commit(){\n"
"asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");\n}\ntemplate<int Left>__device__ inline void multiply_wait(){\nasm volatile(\"wgmma.wait_group.sync.aligned %0;\" ::\"n\"(Left): \"memory\");\n}\n\n\n\n"
"#define GEMMEPI_8(list, i) list(i), list(i + 1), list(i + 2), list(i + 3), list(i + 4), list(i + 5), list(i + 6), list(i + 7)\n#define GEMMEPI_32(list, i) GEMMEPI_8(list, i), GEMMEPI_8(list, i + 8), GEMMEPI_8(list, i + 16), GEMMEPI_8(list, i + 24)\n#define GEMMEPI_SUM(i) \"+f\"(sums[i])\n"
"#define GEMMEPI_0_TO_31 \\\n\"%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, \" \\\n\"%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31\"\n#define GEMMEPI_32_TO_63 \\\n"
"\"%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, \" \\\n\"%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63\"\n#define GEMMEPI_64_TO_95 \\\n\"%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, \" \\\n"
"\"%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95\"\n#define GEMMEPI_96_TO_127 \\\n\"%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, \" \\\n"
"\"%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127\"\n#if GEMMEPI_TILE_N == 64\n#define GEMMEPI_NAMES GEMMEPI_0_TO_31\n#define GEMMEPI_SUMS GEMMEPI_32(GEMMEPI_SUM, 0)\n#define GEMMEPI_ADDS \"%34\"\n#define GEMMEPI_MATRICES \"%32, %33\"\n"
"#define GEMMEPI_TRANSPOSED \", %35, %36\"\n#elif GEMMEPI_TILE_N == 128\n#define GEMMEPI_NAMES GEMMEPI_0_TO_31 \", \" GEMMEPI_32_TO_63\n#define GEMMEPI_SUMS GEMMEPI_32(GEMMEPI_SUM, 0), GEMMEPI_32(GEMMEPI_SUM, 32)\n#define GEMMEPI_ADDS \"%66\"\n#define GEMMEPI_MATRICES \"%64, %65\"\n"
"#define GEMMEPI_TRANSPOSED \", %67, %68\"\n#elif GEMMEPI_TILE_N == 192\n#define GEMMEPI_NAMES GEMMEPI_0_TO_31 \", \" GEMMEPI_32_TO_63 \", \" GEMMEPI_64_TO_95\n#define GEMMEPI_SUMS GEMMEPI_32(GEMMEPI_SUM, 0), GEMMEPI_32(GEMMEPI_SUM, 32), GEMMEPI_32(GEMMEPI_SUM, 64)\n#define GEMMEPI_ADDS \"%98\"\n"
"#define GEMMEPI_MATRICES \"%96, %97\"\n#define GEMMEPI_TRANSPOSED \", %99, %100\"\n#else\n#define GEMMEPI_NAMES GEMMEPI_0_TO_31 \", \" GEMMEPI_32_TO_63 \", \" GEMMEPI_64_TO_95 \", \" GEMMEPI_96_TO_127\n#define GEMMEPI_SUMS \\\n"
"GEMMEPI_32(GEMMEPI_SUM,0),GEMMEPI_32(GEMMEPI_SUM,32),GEMMEPI_32(GEMMEPI_SUM,64),GEMMEPI_32(GEMMEPI_SUM,96)\n#define GEMMEPI_ADDS \"%130\"\n#define GEMMEPI_MATRICES \"%128, %129\"\n#define GEMMEPI_TRANSPOSED \", %131, %132\"\n#endif\n#if GEMMEPI_ELEMENT == 4\n#undef GEMMEPI_TRANSPOSED\n"
"#define GEMMEPI_TRANSPOSED \"\"\n#define GEMMEPI_STEP_K \"k8\"\n#else\n#define GEMMEPI_STEP_K \"k16\"\n#endif\n#define GEMMEPI_TEXT_OF(x) #x\n#define GEMMEPI_TEXT(x)    GEMMEPI_TEXT_OF(x)\n\n\n__device__ inline void multiply(float(&sums)[TILE_N/2],u64 a,u64 b,int adds){\nasm volatile(\"{\\n\"\n"
"\".reg .pred adds;\\n\"\n\"setp.ne.b32 adds, \" GEMMEPI_ADDS \", 0;\\n\"\n\"wgmma.mma_async.sync.aligned.m64n\" GEMMEPI_TEXT(GEMMEPI_TILE_N)GEMMEPI_STEP_K \".f32.\" GEMMEPI_OPERANDS\n"
"\".\" GEMMEPI_OPERANDS \" {\" GEMMEPI_NAMES \"}, \" GEMMEPI_MATRICES \", adds, 1, 1\" GEMMEPI_TRANSPOSED \";\\n\"\n\"}\"\n:GEMMEPI_SUMS\n: \"l\"(a),\"l\"(b),\"r\"(adds),\"n\"(!A_ROWS),\"n\"(!B_ROWS));\n}\n\n\n__device__ inline void sums_are_there(float(&sums)[TILE_N/2]){\n#pragma unroll\n"
"for(int i=0;i<TILE_N/2;i++)\nasm volatile(\"\" : \"+f\"(sums[i])::\"memory\");\n}\n\n\n__device__ inline void begin_sums(float(&sums)[PARTS][TILE_N/2]){\nif(__CUDACC_VER_MAJOR__<13)\n#pragma unroll\nfor(int i=0;i<PARTS*TILE_N/2;i++)\nsums[i/(TILE_N/2)][i%(TILE_N/2)]=0;\n}\n\n\n\n"
"__device__ inline u64 descriptor(u32 address){\n",
"return(u64)1<<62|(u64)(1024>>4)<<32|(u64)(LINES_64>>4)<<16|(u64)(address>>4&0x3fff);\n}\n\nconstexpr int STEP_BYTES=32,STEPS=LINE/STEP_BYTES;\ntemplate<bool Rows>constexpr u64 STEP=(Rows?STEP_BYTES:STEP_BYTES/2*LINE)>>4;\n",
    NULL};
#endif

#ifndef GEMMEPI_NO_ELEMENTWISE
static const char *const gemmepi__source_sum_cu[] = {
"#line 1 \"src/kernels/sum.cu\"\n\n\n\n\n\n#include \"operations.cuh\"\n\n#ifndef GEMMEPI_OUTPUT\n#define GEMMEPI_OUTPUT     OUT_Y\n#define GEMMEPI_OUT_TYPE   F32\n#define GEMMEPI_ACCUMULATE 0\n#define GEMMEPI_VECTORS    0\n#define GEMMEPI_REPEATS    0\n#define GEMMEPI_AT_ONCE    8\n"
"#define GEMMEPI_KEPT       1\n#define GEMMEPI_ONE_AXIS   0\n#endif\n\nconstexpr int THREADS=256,AT_ONCE=GEMMEPI_AT_ONCE;\nconstexpr bool IN_F32=LARGEST_SIZE<=2;\nconstexpr int WIDE=GEMMEPI_VECTORS?VECTOR:1;\ntypedef GEMMEPI_OUT_TYPE Out;\n\n"
"template<int Tensor>constexpr bool REPEATS=(GEMMEPI_REPEATS>>Tensor&1)!=0;\n\n\ntemplate<int Tensor>struct Line{\nWords<Type<Tensor>,WIDE>words;\n};\ntemplate<int Tensor>__device__ inline Line<Tensor>load_line(const gemmepi__sum_params&p,long long at,int valid){\nLine<Tensor>line={};\n"
"if constexpr(USED<Tensor>){\nconst Type<Tensor> *from=(const Type<Tensor> *)p.data[Tensor]+ at;\nif constexpr(REPEATS<Tensor> ||WIDE==1){\nRun<Type<Tensor>,WIDE>run={};\nif(valid>0)\nrun.at[0]= *from;\nline.words=words_of(run);\n}else if(valid>=WIDE){\n"
"line.words= *reinterpret_cast<const Words<Type<Tensor>,WIDE> *>(from);\n}else{\nline.words=words_of(read_elements<WIDE>(from,valid));\n}\n}\nreturn line;\n}\n\nstruct Lines{\nLine<IN_A>a;\nLine<IN_B>b;\nLine<IN_W>w;\nLine<IN_DY>dy;\n};\n\n"
"template<int Tensor>__device__ inline void take_line(const Line<Tensor> &line,Acc(&v)[TENSORS][WIDE]){\nif constexpr(USED<Tensor>){\nwords_to_acc(line.words,v[Tensor]);\nif(REPEATS<Tensor>)\n#pragma unroll\nfor(int i=1;i<WIDE;i++)\nv[Tensor][i]=v[Tensor][0];\n}\n}\n\n\n"
"__device__ inline void values_of(const Lines&lines,const Scalars&s,int valid,Acc(&sums)[WIDE]){\nAcc v[TENSORS][WIDE];\ntake_line(lines.a,v);\ntake_line(lines.b,v);\ntake_line(lines.w,v);\ntake_line(lines.dy,v);\n#pragma unroll\nfor(int i=0;i<WIDE;i++){\nAcc one[TENSORS];\n#pragma unroll\n"
"for(int t=0;t<TENSORS;t++)\none[t]=v[t][i];\noperate(one,s);\nsums[i]=i<valid?one[GEMMEPI_OUTPUT]:Acc(0);\n}\n}\n\n\n\nstruct Index{\nlong long at[4];\n};\n__device__ inline Index operator+(const Index&x,const Index&y){\n"
"return{x.at[0]+ y.at[0],x.at[1]+ y.at[1],x.at[2]+ y.at[2],x.at[3]+ y.at[3]};\n}\n\n\n__device__ inline Index index_of(const gemmepi__axes&axes,long long index,bool lines,long long&first){\nIndex result={};\nfirst=0;\n#pragma unroll 1\nfor(int d=0;d<axes.rank;d++){\n"
"long long extent=d==0&&lines?(axes.extent[d]+ WIDE - 1)/WIDE:axes.extent[d],rest=0,at=index;\nif(d + 1<axes.rank){\nrest=(index|extent)>>32?index/extent:(long long)((u32)index/(u32)extent);\nat=index - rest*extent;\n}\nif(d==0&&lines){\nat*=WIDE;\nfirst=at;\n}\n"
"#define GEMMEPI_ADD(Tensor)                       \\\nif(USED<Tensor>)                            \\\nresult.at[Tensor]+=at*axes.stride[Tensor][d];\nGEMMEPI_EACH_INPUT(GEMMEPI_ADD)\n#undef GEMMEPI_ADD\nindex=rest;\n}\nreturn result;\n}\n\n"
"__device__ inline Lines load_lines(const gemmepi__sum_params&p,const Index&index,int valid){\nreturn{load_line<IN_A>(p,index.at[IN_A],valid),load_line<IN_B>(p,index.at[IN_B],valid),\nload_line<IN_W>(p,index.at[IN_W],valid),load_line<IN_DY>(p,index.at[IN_DY],valid)};\n}\n\n\n"
"__device__ inline Index steps_of(const gemmepi__sum_params&p,long long count){\nIndex result={};\n#define GEMMEPI_STEP(Tensor)  \\\nif(USED<Tensor>)        \\\nresult.at[Tensor]=count*p.summed.stride[Tensor][0];\nGEMMEPI_EACH_INPUT(GEMMEPI_STEP)\n#undef GEMMEPI_STEP\nreturn result;\n}\n\n\n\n\n"
"__device__ inline void finish(const gemmepi__sum_params&p,u32 part,long long index,double sum){\nlong long at=0,rest=index;\nif(p.part_count<p.summed_count){\n((double*)p.data[GEMMEPI_OUTPUT])[part*p.kept_count + index]=sum;\nreturn;\n}\n#pragma unroll 1\nfor(int d=0;d<p.kept.rank;d++){\n"
"long long next=d + 1<p.kept.rank?rest/p.kept.extent[d]:0;\nat +=(rest - next*p.kept.extent[d])*p.kept.stride[GEMMEPI_OUTPUT][d];\nrest=next;\n}\nOut*out=(Out*)p.data[GEMMEPI_OUTPUT]+ at;\nif(GEMMEPI_ACCUMULATE)\nsum +=to_acc<double>(*out);\n*out=from_acc<Out>(sum);\n}\n\n\n",
"template<int N>__device__ inline Acc sum_of(const Acc(&x)[N]){\nif constexpr(N==1){\nreturn x[0];\n}else{\nAcc pairs[N/2];\n#pragma unroll\nfor(int i=0;i<N/2;i++)\npairs[i]=x[2*i]+ x[2*i + 1];\nreturn sum_of(pairs);\n}\n}\n\n\ntemplate<int Count>\n"
"__device__ inline void sum_of_rows(const Lines*rows,const Scalars&s,const int*exist,Acc(&sums)[WIDE]){\nif constexpr(Count==1){\nvalues_of(*rows,s,*exist,sums);\n}else{\nAcc others[WIDE];\nsum_of_rows<Count/2>(rows,s,exist,sums);\nsum_of_rows<Count/2>(rows + Count/2,s,exist + Count/2,others);\n"
"#pragma unroll\nfor(int i=0;i<WIDE;i++)\nsums[i]+=others[i];\n}\n}\n\n#if GEMMEPI_KEPT\n\n\nextern \"C\" __global__ void __launch_bounds__(THREADS)gemmepi_sum_kept(GEMMEPI_PARAMS gemmepi__sum_params p){\n__shared__ double shared[THREADS*WIDE];\nScalars s=scalars_of(p.operation);\n"
"u32 part=blockIdx.x/p.kept_blocks,thread=threadIdx.y*blockDim.x + threadIdx.x;\nlong long lines=(p.kept.extent[0]+ WIDE - 1)/WIDE,kept=p.kept_count/p.kept.extent[0]*lines;\nlong long line=(long long)(blockIdx.x - part*p.kept_blocks)*blockDim.x + threadIdx.x,first;\n"
"Index base=index_of(p.kept,line,true,first);\nint valid=line<kept?p.kept.extent[0]- first<WIDE?(int)(p.kept.extent[0]- first):WIDE:0;\nlong long row=part*p.part_count + threadIdx.y,end=(part + 1)*p.part_count,unused;\nend=end<p.summed_count?end:p.summed_count;\ndouble sums[WIDE]={};\n"
"Index next=GEMMEPI_ONE_AXIS?base + steps_of(p,row):base,step=steps_of(p,blockDim.y);\nfor(;row<end&&valid;row +=(long long)AT_ONCE*blockDim.y){\nLines loaded[AT_ONCE];\nint exist[AT_ONCE];\n#pragma unroll\nfor(int r=0;r<AT_ONCE;r++){\nlong long at=row +(long long)r*blockDim.y;\n"
"if(!GEMMEPI_ONE_AXIS)\nnext=base + index_of(p.summed,at<end?at:row,false,unused);\nexist[r]=at<end?valid:0;\nloaded[r]=load_lines(p,next,exist[r]);\nif(GEMMEPI_ONE_AXIS)\nnext=next + step;\n}\nif(IN_F32){\nAcc values[WIDE];\nsum_of_rows<AT_ONCE>(loaded,s,exist,values);\n#pragma unroll\n"
"for(int i=0;i<WIDE;i++)\nsums[i]+=values[i];\n}else{\n#pragma unroll\nfor(int r=0;r<AT_ONCE;r++){\nAcc values[WIDE];\nvalues_of(loaded[r],s,exist[r],values);\n#pragma unroll\nfor(int i=0;i<WIDE;i++)\nsums[i]+=values[i];\n}\n}\n}\n#pragma unroll\nfor(int i=0;i<WIDE;i++)\n"
"shared[i*THREADS + thread]=sums[i];\nfor(u32 half=blockDim.y/2;half>0;half/=2){\n__syncthreads();\nif(threadIdx.y<half)\n#pragma unroll\nfor(int i=0;i<WIDE;i++)\nshared[i*THREADS + thread]+=shared[i*THREADS + thread + half*blockDim.x];\n}\nif(threadIdx.y==0)\nfor(int i=0;i<valid;i++)\n"
"finish(p,part,line/lines*p.kept.extent[0]+ first + i,shared[i*THREADS + thread]);\n}\n\n#else\n\n\n\nextern \"C\" __global__ void __launch_bounds__(THREADS)gemmepi_sum_along(GEMMEPI_PARAMS gemmepi__sum_params p){\n__shared__ double warps[THREADS/32];\nScalars s=scalars_of(p.operation);\n"
"u32 part=blockIdx.x/p.kept_blocks,thread=threadIdx.y*blockDim.x + threadIdx.x;\nlong long index=(long long)(blockIdx.x - part*p.kept_blocks)*blockDim.y + threadIdx.y,unused;\nbool exists=index<p.kept_count;\nIndex base=index_of(p.kept,exists?index:0,false,unused);\n"
"long long line=part*p.part_count + threadIdx.x,end=(part + 1)*p.part_count;\nend= !exists?0:end<p.summed_count?end:p.summed_count;\nIndex next=GEMMEPI_ONE_AXIS?base + steps_of(p,line*WIDE):base,step=steps_of(p,blockDim.x*WIDE);\ndouble sum=0;\n"
"for(;line<end;line +=(long long)AT_ONCE*blockDim.x){\nLines loaded[AT_ONCE];\nint valid[AT_ONCE];\n#pragma unroll\nfor(int r=0;r<AT_ONCE;r++){\nlong long at=line +(long long)r*blockDim.x,first=at*WIDE;\nif(!GEMMEPI_ONE_AXIS)\nnext=base + index_of(p.summed,at<end?at:line,true,first);\n"
"valid[r]=at>=end?0:p.summed.extent[0]- first<WIDE?(int)(p.summed.extent[0]- first):WIDE;\nloaded[r]=load_lines(p,next,valid[r]);\nif(GEMMEPI_ONE_AXIS)\nnext=next + step;\n}\n#pragma unroll\nfor(int r=0;r<AT_ONCE;r++){\nAcc values[WIDE];\nvalues_of(loaded[r],s,valid[r],values);\nif(IN_F32)\n"
"sum +=sum_of(values);\nelse\n#pragma unroll\nfor(int i=0;i<WIDE;i++)\nsum +=values[i];\n}\n}\n",
"for(u32 half=(blockDim.x<32?blockDim.x:32)/2;half>0;half/=2)\nsum +=__shfl_xor_sync(0xffffffff,sum,half);\nif(blockDim.x>32){\nif(thread%32==0)\nwarps[thread/32]=sum;\n__syncthreads();\nfor(u32 other=1;other<blockDim.x/32;other++)\nsum=threadIdx.x==0?sum + warps[thread/32 + other]:sum;\n}\n"
"if(threadIdx.x==0&&exists)\nfinish(p,part,index,sum);\n}\n\n#endif\n",
    NULL};
#endif

static const char *const gemmepi__source_transpose_cu[] = {
"#line 1 \"src/kernels/transpose.cu\"\n\n\n#include \"types.cuh\"\n#include \"params.h\"\n\n#ifndef GEMMEPI_TILE\n#define GEMMEPI_TILE 64\n#endif\n#ifndef GEMMEPI_THREADS\n#define GEMMEPI_THREADS 256\n#endif\n\n"
"constexpr int TILE=GEMMEPI_TILE,THREADS=GEMMEPI_THREADS,AT_ONCE=THREADS/TILE,TIMES=TILE/AT_ONCE;\n\nextern \"C\" __global__ void __launch_bounds__(THREADS)gemmepi_transpose(GEMMEPI_PARAMS gemmepi__convert_params p){\n__shared__ u32 square[TILE][TILE + 1];\n"
"u32 across=(u32)((p.columns + TILE - 1)/TILE),of_item=across*(u32)((p.rows + TILE - 1)/TILE);\nu32 item=blockIdx.x/of_item,of_lines=(blockIdx.x - item*of_item)/across;\nlong long row=(long long)of_lines*TILE,column=(long long)(blockIdx.x - item*of_item - of_lines*across)*TILE;\n"
"int lane=threadIdx.x%TILE,line=threadIdx.x/TILE;\nint rows_left=p.rows - row<TILE?(int)(p.rows - row):TILE;\nint columns_left=p.columns - column<TILE?(int)(p.columns - column):TILE;\nafter_launches_before();\nconst u32*x=(const u32*)p.x.data + item*p.x.stride + row*p.x.ld + column;\n"
"u32*out=(u32*)p.out.data + item*p.out.stride + column*p.out.ld + row;\nu32 words[TIMES];\n#pragma unroll\nfor(int i=0;i<TIMES;i++)\nwords[i]=line + i*AT_ONCE<rows_left&&lane<columns_left?x[(line + i*AT_ONCE)*p.x.ld + lane]:0;\n#pragma unroll\nfor(int i=0;i<TIMES;i++)\n"
"square[line + i*AT_ONCE][lane]=words[i];\n__syncthreads();\n#pragma unroll\nfor(int i=0;i<TIMES;i++)\nif(line + i*AT_ONCE<columns_left&&lane<rows_left)\nout[(line + i*AT_ONCE)*p.out.ld + lane]=square[lane][line + i*AT_ONCE];\n}\n",
    NULL};

static const char *const gemmepi__source_types_cuh[] = {
"#line 1 \"src/kernels/types.cuh\"\n\n#pragma once\n\ntypedef unsigned char u8;\ntypedef unsigned short u16;\ntypedef unsigned int u32;\ntypedef unsigned long long u64;\n\ntemplate<class X,class Y>constexpr bool SAME=false;\ntemplate<class X>constexpr bool SAME<X,X> =true;\n\n\n"
"#if __CUDA_ARCH__ >= 700\n#define GEMMEPI_PARAMS const __grid_constant__\n#else\n#define GEMMEPI_PARAMS const\n#endif\n\n\n\n__device__ inline void after_launches_before(){\n#if __CUDA_ARCH__ >= 900\nasm volatile(\"griddepcontrol.wait;\\ngriddepcontrol.launch_dependents;\" ::: \"memory\");\n"
"#endif\n}\n\ntypedef float F32;\ntypedef double F64;\ntypedef signed char I8;\ntypedef int I32;\nstruct F16{\nu16 bits;\n};\nstruct BF16{\nu16 bits;\n};\nstruct E4M3{\nu8 bits;\nstatic constexpr int MANTISSA=3,BIAS=7;\nstatic constexpr u32 LARGEST=0x7e;\n};\nstruct E5M2{\nu8 bits;\n"
"static constexpr int MANTISSA=2,BIAS=15;\nstatic constexpr u32 LARGEST=0x7b;\n};\ntemplate<class T>constexpr bool IS_FP8=SAME<T,E4M3> ||SAME<T,E5M2>;\n\n\nenum{SCALE_NONE,SCALE_TENSOR,SCALE_OUTER,SCALE_VECTOR_128,SCALE_BLOCK_128};\nconstexpr int SCALE_STEPS=128;\n\n\n\nstruct Scale_line{\n"
"const float*at;\nlong long step;\n};\ntemplate<int Mode>\n__device__ inline Scale_line scale_line(const float*scale,long long outer,long long extent,long long k){\nif(Mode==SCALE_VECTOR_128)\nreturn{scale + outer,extent};\n"
"return{scale + outer/SCALE_STEPS*((k + 4*SCALE_STEPS - 1)/(4*SCALE_STEPS)*4),1};\n}\n\n\n#if __CUDA_ARCH__ >= 900 || (__CUDA_ARCH__ >= 890 && (__CUDACC_VER_MAJOR__ > 12 || __CUDACC_VER_MINOR__ > 0))\n#define GEMMEPI_FP8_INSTRUCTIONS 1\n#else\n#define GEMMEPI_FP8_INSTRUCTIONS 0\n#endif\n\n\n"
"__device__ inline float to_f32(F32 x){\nreturn x;\n}\n__device__ inline float to_f32(F16 x){\nfloat y;\nasm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y): \"h\"(x.bits));\nreturn y;\n}\n__device__ inline float to_f32(BF16 x){\nreturn __uint_as_float((u32)x.bits<<16);\n}\n"
"__device__ inline float to_f32(I8 x){\nreturn(float)x;\n}\n__device__ inline float to_f32(I32 x){\nreturn(float)x;\n}\n__device__ inline void from_f32(float x,F32&y){\ny=x;\n}\n__device__ inline void from_f32(float x,F16&y){\nasm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(y.bits): \"f\"(x));\n}\n"
"__device__ inline void from_f32(float x,BF16&y){\n#if __CUDA_ARCH__ >= 800\nasm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(y.bits): \"f\"(x));\n#else\nu32 bits=__float_as_uint(x);\ny.bits=x!=x?(u16)0x7fff:(u16)((bits + 0x7fff +(bits>>16&1))>>16);\n#endif\n}\n"
"__device__ inline void from_f32(float x,I8&y){\nint whole=__float2int_rn(x);\ny=(I8)(whole< -128? -128:whole>127?127:whole);\n}\n\n\n#if GEMMEPI_FP8_INSTRUCTIONS\ntemplate<class T>__device__ inline u16 pack_fp8(float first,float second){\nu16 two;\nif constexpr(SAME<T,E4M3>)\n"
"asm(\"cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;\" : \"=h\"(two): \"f\"(second),\"f\"(first));\nelse\nasm(\"cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;\" : \"=h\"(two): \"f\"(second),\"f\"(first));\nreturn two;\n}\ntemplate<class T>__device__ inline u32 unpack_fp8(u16 two){\nu32 wide;\n"
"if constexpr(SAME<T,E4M3>)\nasm(\"cvt.rn.f16x2.e4m3x2 %0, %1;\" : \"=r\"(wide): \"h\"(two));\nelse\nasm(\"cvt.rn.f16x2.e5m2x2 %0, %1;\" : \"=r\"(wide): \"h\"(two));\nreturn wide;\n}\n#else\ntemplate<class T>__device__ inline u32 encode_fp8(float x){\nconstexpr int shift=23 - T::MANTISSA;\n\n"
"constexpr u32 rounder=(u32)(127 + 23 + 1 - T::BIAS - T::MANTISSA)<<23;\nu32 bits=__float_as_uint(x),size=bits&0x7fffffff,code;\nif(size<(u32)(128 - T::BIAS)<<23)\ncode=__float_as_uint(__uint_as_float(size)+ __uint_as_float(rounder))- rounder;\nelse\n"
"code=((size +(1u<<(shift - 1))- 1 +(size>>shift&1))>>shift)-\n((u32)(127 - T::BIAS)<<T::MANTISSA);\ncode=code>T::LARGEST?T::LARGEST:code;\nreturn x!=x?0x7f:bits>>24&0x80|code;\n}\ntemplate<class T>__device__ inline u16 pack_fp8(float first,float second){\n"
"return(u16)(encode_fp8<T>(first)|encode_fp8<T>(second)<<8);\n}\ntemplate<class T>__device__ inline u32 decode_fp8(u32 code){\nif(SAME<T,E5M2>)\nreturn code<<8;\n",
"float size=__uint_as_float((code&0x7f)<<20)*__uint_as_float((127 + 120)<<23);\nF16 y;\nfrom_f32(size,y);\nreturn(code&0x80)<<8|((code&0x7f)==0x7f?0x7fff:y.bits);\n}\ntemplate<class T>__device__ inline u32 unpack_fp8(u16 two){\nreturn decode_fp8<T>(two&0xff)|decode_fp8<T>(two>>8)<<16;\n}\n"
"#endif\n\ntemplate<class T>__device__ inline F16 fp8_to_f16(T x){\nreturn{(u16)unpack_fp8<T>(x.bits)};\n}\n__device__ inline float to_f32(E4M3 x){\nreturn to_f32(fp8_to_f16(x));\n}\n__device__ inline float to_f32(E5M2 x){\nreturn to_f32(fp8_to_f16(x));\n}\n"
"__device__ inline void from_f32(float x,E4M3&y){\ny.bits=(u8)pack_fp8<E4M3>(x,0);\n}\n__device__ inline void from_f32(float x,E5M2&y){\ny.bits=(u8)pack_fp8<E5M2>(x,0);\n}\n\n\n__device__ inline I32 wrap(double x){\n"
"return x> -4611686018427387904.0&&x<4611686018427387904.0?(I32)__double2ll_rn(x):0;\n}\n\n\ntemplate<class A,class T>__device__ inline A to_acc(T x){\nif constexpr(SAME<A,T>)\nreturn x;\nelse if constexpr(SAME<T,I32>)\nreturn(A)x;\nelse\nreturn to_f32(x);\n}\n"
"template<class T,class A>__device__ inline T from_acc(A x){\nT y;\nif constexpr(SAME<A,T>){\ny=x;\n}else if constexpr(SAME<A,F32>){\nfrom_f32(x,y);\n}else if constexpr(SAME<A,F64> &&SAME<T,F32>){\ny=(float)x;\n}else if constexpr(SAME<A,F64> &&SAME<T,I32>){\ny=wrap(x);\n}else{\n\n"
"float cut=__double2float_rz(x);\nfrom_f32(cut==x?cut:__uint_as_float(__float_as_uint(cut)|1),y);\n}\nreturn y;\n}\n\n\ntemplate<class To,class T>__device__ inline To convert(T x){\nTo y;\nif constexpr(SAME<To,T>)\ny=x;\nelse if constexpr(SAME<To,I32>)\ny=x;\n"
"else if constexpr(SAME<To,F16> &&IS_FP8<T>)\ny=fp8_to_f16(x);\nelse if constexpr(SAME<To,BF16>)\ny.bits=(u16)(__float_as_uint(to_f32(x))>>16);\nelse\nfrom_f32(to_f32(x),y);\nreturn y;\n}\n\n\nconstexpr int RUN=8;\n\n\n\n__device__ inline int existing(int left){\nreturn left<RUN?left:RUN;\n}\n\n"
"template<class T,int N=RUN>struct alignas(sizeof(T)*N>16?16:sizeof(T)*N)Run{\nT at[N];\n};\n\n\ntemplate<int Bytes>struct Word_of{\ntypedef u32 type;\n};\ntemplate<>struct Word_of<2>{\ntypedef u16 type;\n};\ntemplate<>struct Word_of<1>{\ntypedef u8 type;\n};\n"
"template<class T,int N=RUN>struct alignas(alignof(Run<T,N>))Words{\ntypedef typename Word_of<sizeof(Run<T,N>)>::type Word;\nWord at[sizeof(Run<T,N>)/sizeof(Word)];\n};\ntemplate<class T,int N>__device__ inline Run<T,N>run_of(const Words<T,N> &words){\nRun<T,N>run;\n"
"memcpy(&run,&words,sizeof run);\nreturn run;\n}\ntemplate<class T,int N>__device__ inline Words<T,N>words_of(const Run<T,N> &run){\nWords<T,N>words;\nmemcpy(&words,&run,sizeof words);\nreturn words;\n}\n\n\ntemplate<class To,class T>__device__ inline Words<To>convert_run(const Words<T> &x){\n"
"if constexpr(SAME<To,T>){\nreturn x;\n}else{\nRun<T>from=run_of(x);\nRun<To>to;\nWords<To>words;\n#pragma unroll\nfor(int i=0;i<RUN;i +=2){\nif constexpr(IS_FP8<T>){\nu32 two=unpack_fp8<T>((u16)(x.at[i/4]>>i%4*8));\nif constexpr(SAME<To,F16>)\nwords.at[i/2]=two;\n"
"to.at[i]=convert<To>(F16{(u16)two});\nto.at[i + 1]=convert<To>(F16{(u16)(two>>16)});\n}else{\nto.at[i]=convert<To>(from.at[i]);\nto.at[i + 1]=convert<To>(from.at[i + 1]);\n}\n}\nif constexpr(IS_FP8<T> &&SAME<To,F16>)\nreturn words;\nelse\nreturn words_of(to);\n}\n}\n"
"template<class A,class T,int N>__device__ inline void run_to_acc(const Run<T,N> &x,A(&values)[N]){\n#pragma unroll\nfor(int i=0;i<N;i +=2){\nif constexpr(N==1){\nvalues[i]=to_acc<A>(x.at[i]);\n}else if constexpr(IS_FP8<T>){\nu32 two=unpack_fp8<T>((u16)(x.at[i].bits|x.at[i + 1].bits<<8));\n"
"values[i]=to_acc<A>(F16{(u16)two});\nvalues[i + 1]=to_acc<A>(F16{(u16)(two>>16)});\n}else{\nvalues[i]=to_acc<A>(x.at[i]);\nvalues[i + 1]=to_acc<A>(x.at[i + 1]);\n}\n}\n}\n\ntemplate<class A,class T,int N>__device__ inline void words_to_acc(const Words<T,N> &words,A(&values)[N]){\n"
"if constexpr(SAME<T,BF16> &&N>1){\n#pragma unroll\nfor(int i=0;i<N;i +=2){\nvalues[i]=(A)__uint_as_float(words.at[i/2]<<16);\nvalues[i + 1]=(A)__uint_as_float(words.at[i/2]&0xffff0000);\n}\n}else{\n",
"run_to_acc(run_of(words),values);\n}\n}\ntemplate<class T,class A,int N>__device__ inline Run<T,N>run_from_acc(const A(&values)[N]){\nRun<T,N>y;\n#pragma unroll\nfor(int i=0;i<N;i +=2){\nif constexpr(N==1){\ny.at[i]=from_acc<T>(values[i]);\n}else if constexpr(IS_FP8<T> &&SAME<A,F32>){\n"
"u16 two=pack_fp8<T>(values[i],values[i + 1]);\ny.at[i].bits=(u8)two;\ny.at[i + 1].bits=(u8)(two>>8);\n}else{\ny.at[i]=from_acc<T>(values[i]);\ny.at[i + 1]=from_acc<T>(values[i + 1]);\n}\n}\nreturn y;\n}\n\n\n"
"template<int N=RUN,class T>__device__ inline Run<T,N>read_elements(const T*from,int valid){\nRun<T,N>run={};\n#pragma unroll\nfor(int i=0;i<N;i++)\nif(i<valid)\nrun.at[i]=from[i];\nreturn run;\n}\n\n\ntemplate<bool Aligned,class T>__device__ inline Words<T>read_run(const T*from,int valid){\n"
"if(Aligned&&valid==RUN)\nreturn*reinterpret_cast<const Words<T> *>(from);\nreturn words_of(read_elements(from,valid));\n}\n\ntemplate<bool Aligned,class A,class T>\n__device__ inline void store_run(T*to,int valid,const A(&values)[RUN]){\nRun<T>run=run_from_acc<T>(values);\n"
"if(Aligned&&valid==RUN){\n*reinterpret_cast<Words<T> *>(to)=words_of(run);\n}else{\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nif(i<valid)\nto[i]=run.at[i];\n}\n}\n",
    NULL};

/* By the name that #include lines have; a source is its parts one after another. */
typedef struct gemmepi__source {
    const char *name;
    const char *const *parts;
} gemmepi__source;

static const gemmepi__source gemmepi__sources[] = {
    {"activation.cuh", gemmepi__source_activation_cuh},
    {"amax.cuh", gemmepi__source_amax_cuh},
    {"codes.h", gemmepi__source_codes_h},
    {"convert.cu", gemmepi__source_convert_cu},
    {"copy.cuh", gemmepi__source_copy_cuh},
#ifndef GEMMEPI_NO_ELEMENTWISE
    {"elementwise.cu", gemmepi__source_elementwise_cu},
#endif
    {"epilogue.cuh", gemmepi__source_epilogue_cuh},
    {"epilogue_column_sums.cuh", gemmepi__source_epilogue_column_sums_cuh},
    {"epilogue_formula.cuh", gemmepi__source_epilogue_formula_cuh},
    {"epilogue_fragment.cuh", gemmepi__source_epilogue_fragment_cuh},
    {"epilogue_mask.cuh", gemmepi__source_epilogue_mask_cuh},
    {"epilogue_parameters.cuh", gemmepi__source_epilogue_parameters_cuh},
    {"epilogue_staging.cuh", gemmepi__source_epilogue_staging_cuh},
    {"gemm_plain.cu", gemmepi__source_gemm_plain_cu},
#ifndef GEMMEPI_NO_SM80
    {"gemm_sm80.cu", gemmepi__source_gemm_sm80_cu},
#endif
#ifndef GEMMEPI_NO_SM90
    {"gemm_sm90.cu", gemmepi__source_gemm_sm90_cu},
#endif
#ifndef GEMMEPI_NO_ELEMENTWISE
    {"operations.cuh", gemmepi__source_operations_cuh},
#endif
    {"pack.cu", gemmepi__source_pack_cu},
    {"params.h", gemmepi__source_params_h},
    {"pass.cu", gemmepi__source_pass_cu},
    {"reduce.cu", gemmepi__source_reduce_cu},
#ifndef GEMMEPI_NO_ELEMENTWISE
    {"scaled.cu", gemmepi__source_scaled_cu},
#endif
#ifndef GEMMEPI_NO_SM90
    {"sm90/barriers.cuh", gemmepi__source_sm90_barriers_cuh},
#endif
#ifndef GEMMEPI_NO_SM90
    {"sm90/box.cuh", gemmepi__source_sm90_box_cuh},
#endif
#ifndef GEMMEPI_NO_SM90
    {"sm90/box_memory.cuh", gemmepi__source_sm90_box_memory_cuh},
#endif
#ifndef GEMMEPI_NO_SM90
    {"sm90/column_sums.cuh", gemmepi__source_sm90_column_sums_cuh},
#endif
#ifndef GEMMEPI_NO_SM90
    {"sm90/columns.cuh", gemmepi__source_sm90_columns_cuh},
#endif
#ifndef GEMMEPI_NO_SM90
    {"sm90/consume.cuh", gemmepi__source_sm90_consume_cuh},
#endif
#ifndef GEMMEPI_NO_SM90
    {"sm90/load.cuh", gemmepi__source_sm90_load_cuh},
#endif
#ifndef GEMMEPI_NO_SM90
    {"sm90/mask.cuh", gemmepi__source_sm90_mask_cuh},
#endif
#ifndef GEMMEPI_NO_SM90
    {"sm90/multiply.cuh", gemmepi__source_sm90_multiply_cuh},
#endif
#ifndef GEMMEPI_NO_SM90
    {"sm90/options.cuh", gemmepi__source_sm90_options_cuh},
#endif
#ifndef GEMMEPI_NO_SM90
    {"sm90/parked.cuh", gemmepi__source_sm90_parked_cuh},
#endif
#ifndef GEMMEPI_NO_SM90
    {"sm90/pipeline.cuh", gemmepi__source_sm90_pipeline_cuh},
#endif
#ifndef GEMMEPI_NO_SM90
    {"sm90/ptx.cuh", gemmepi__source_sm90_ptx_cuh},
#endif
#ifndef GEMMEPI_NO_SM90
    {"sm90/schedule.cuh", gemmepi__source_sm90_schedule_cuh},
#endif
#ifndef GEMMEPI_NO_SM90
    {"sm90/shared.cuh", gemmepi__source_sm90_shared_cuh},
#endif
#ifndef GEMMEPI_NO_SM90
    {"sm90/split_k.cuh", gemmepi__source_sm90_split_k_cuh},
#endif
#ifndef GEMMEPI_NO_SM90
    {"sm90/totals.cuh", gemmepi__source_sm90_totals_cuh},
#endif
#ifndef GEMMEPI_NO_SM90
    {"sm90/wgmma.cuh", gemmepi__source_sm90_wgmma_cuh},
#endif
#ifndef GEMMEPI_NO_ELEMENTWISE
    {"sum.cu", gemmepi__source_sum_cu},
#endif
    {"transpose.cu", gemmepi__source_transpose_cu},
    {"types.cuh", gemmepi__source_types_cuh},
    {NULL, NULL}};

#endif
