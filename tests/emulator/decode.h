// From an operation's name to what does it.
#ifndef EMULATOR_DECODE_H
#define EMULATOR_DECODE_H

#include "together.h"

// What an operation takes, a letter for each operand:
//   0 2 4 8  a register or number of so many bytes; 0: a predicate
//   w        one of any size
//   {        a list of registers of 4 bytes, h of 2     m   lanes that take part
//   a        an address; [ one without an offset        n   a number
//   _        nothing of use                             o   what follows may be missing
struct row {
    std::string operands;
    handler run;
    op_kind kind = STRAIGHT;
};
typedef std::map<std::string, row> table;

template <class T> static void add_comparisons(table &t, const std::string &type, const std::string &w) {
    t["setp.eq." + type] = {"0" + w + w, compare<T, is_eq<T>>};
    t["setp.ne." + type] = {"0" + w + w, compare<T, is_ne<T>>};
    t["setp.lt." + type] = {"0" + w + w, compare<T, is_lt<T>>};
    t["setp.le." + type] = {"0" + w + w, compare<T, is_le<T>>};
    t["setp.gt." + type] = {"0" + w + w, compare<T, is_gt<T>>};
    t["setp.ge." + type] = {"0" + w + w, compare<T, is_ge<T>>};
}

template <class T> static void add_floats(table &t, const std::string &type, const std::string &w) {
    t["add." + type] = t["add.rn." + type] = {w + w + w, two<T, add<T>>};
    t["sub." + type] = t["sub.rn." + type] = {w + w + w, two<T, sub<T>>};
    t["mul." + type] = t["mul.rn." + type] = {w + w + w, two<T, mul<T>>};
    t["fma.rn." + type] = {w + w + w + w, three<T, fma_of<T>>};
    t["neg." + type] = {w + w, one<T, neg<T>>};
    t["abs." + type] = {w + w, one<T, abs_of<T>>};
    t["min." + type] = {w + w + w, two<T, min_float<T>>};
    t["max." + type] = {w + w + w, two<T, max_float<T>>};
    t["copysign." + type] = {w + w + w, two<T, copysign_of<T>>};
    t["sqrt.rn." + type] = {w + w, one<T, root<T>>};
    t["cvt.rni." + type + "." + type] = {w + w, one<T, nearest_whole<T>>};
    t["cvt.rmi." + type + "." + type] = {w + w, one<T, whole_below<T>>};
    t["cvt.rzi." + type + "." + type] = {w + w, one<T, whole_towards_0<T>>};
    t["div.rn." + type] = {w + w + w, two<T, quotient<T>>};
    t["rcp.rn." + type] = {w + w, one<T, rcp<T>>};
    t["setp.equ." + type] = {"0" + w + w, compare<T, is_equ<T>>};
    t["setp.neu." + type] = {"0" + w + w, compare<T, is_neu<T>>};
    t["setp.ltu." + type] = {"0" + w + w, compare<T, is_ltu<T>>};
    t["setp.leu." + type] = {"0" + w + w, compare<T, is_leu<T>>};
    t["setp.gtu." + type] = {"0" + w + w, compare<T, is_gtu<T>>};
    t["setp.geu." + type] = {"0" + w + w, compare<T, is_geu<T>>};
    t["setp.nan." + type] = {"0" + w + w, compare<T, is_nan<T>>};
    t["setp.num." + type] = {"0" + w + w, compare<T, is_num<T>>};
    add_comparisons<T>(t, type, w);
}

// Signed sums and products are made of unsigned numbers U, which may overflow.
template <class T, class U> static void add_whole(table &t, const std::string &type, const std::string &w) {
    t["add." + type] = {w + w + w, two<U, add<U>>};
    t["sub." + type] = {w + w + w, two<U, sub<U>>};
    t["mul.lo." + type] = {w + w + w, two<U, mul<U>>};
    t["mad.lo." + type] = {w + w + w + w, three<U, mad<U>>};
    t["div." + type] = {w + w + w, two<T, div_of<T>>};
    t["rem." + type] = {w + w + w, two<T, rem_of<T>>};
    t["min." + type] = {w + w + w, two<T, min_whole<T>>};
    t["max." + type] = {w + w + w, two<T, max_whole<T>>};
    t["mul.hi." + type] = {w + w + w, two<T, mul_high<T>>};
    t["neg." + type] = {w + w, one<U, neg_whole<U>>};
    t["shr." + type] = {w + w + "4", shift<T, shr<T>>};
    t["bfe." + type] = {w + w + "44", bit_field<T>};
    add_comparisons<T>(t, type, w);
}

template <class T> static void add_bits(table &t, const std::string &type, const std::string &w) {
    t["and." + type] = {w + w + w, two<T, and_of<T>>};
    t["or." + type] = {w + w + w, two<T, or_of<T>>};
    t["xor." + type] = {w + w + w, two<T, xor_of<T>>};
    t["not." + type] = {w + w, one<T, not_of<T>>};
    t["shl." + type] = {w + w + "4", shift<T, shl<T>>};
    t["setp.eq." + type] = {"0" + w + w, compare<T, is_eq<T>>};
    t["setp.ne." + type] = {"0" + w + w, compare<T, is_ne<T>>};
}

template <class T> static void add_moves(table &t, const std::string &type, const std::string &w) {
    t["mov." + type] = {w + w, one<T, same<T>>};
    t["selp." + type] = {w + w + w + "0", select<T>};
}

// Registers may be wider than the type: the lower bits are read, and all of them written.
template <class From> static void add_conversions(table &t, const std::string &from) {
    t["cvt.s8." + from] = {"ww", convert_whole<s8, From>};
    t["cvt.u8." + from] = {"ww", convert_whole<u8, From>};
    t["cvt.s16." + from] = {"ww", convert_whole<s16, From>};
    t["cvt.u16." + from] = {"ww", convert_whole<u16, From>};
    t["cvt.s32." + from] = {"ww", convert_whole<s32, From>};
    t["cvt.u32." + from] = {"ww", convert_whole<u32, From>};
    t["cvt.s64." + from] = {"ww", convert_whole<s64, From>};
    t["cvt.u64." + from] = {"ww", convert_whole<u64, From>};
}

template <class A, class B> static void add_scaled(table &t, const std::string &types) {
    t["mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32." + types +
      ".f32.ue8m0"] = {"{{{{{h{h", multiply_scaled<A, B, 1, false>, TOGETHER};
}

static u32 first_of(u32 a, u32) {
    return a;
}
static u32 not_first(u32 a, u32) {
    return ~a;
}

static table make_table() {
    table t;
    add_floats<float>(t, "f32", "4");
    add_floats<double>(t, "f64", "8");
    t["max.NaN.f32"] = {"444", two<float, max_nan>};
    t["min.NaN.f32"] = {"444", two<float, min_nan>};
    t["add.rz.f32"] = {"444", two<float, add_to_zero>};
    t["fma.rm.f32"] = {"4444", three<float, fma_down>};
    t["fma.rz.f32"] = {"4444", three<float, fma_to_zero>};
    t["ex2.approx.f32"] = {"44", one<float, ex2_approx_subnormal>};
    t["div.approx.f32"] = {"444", two<float, quotient<float>>};
    t["rsqrt.approx.f32"] = {"44", one<float, rsqrt_approx>};
    t["rsqrt.approx.f64"] = {"88", one<double, rsqrt_approx_64>};
    t["ex2.approx.ftz.f32"] = {"44", one<float, ex2_approx>};
    t["div.approx.ftz.f32"] = {"444", two<float, div_approx>};
    t["rcp.approx.ftz.f32"] = {"44", one<float, rcp_approx>};
    t["rcp.approx.ftz.f64"] = {"88", one<double, rcp_approx_64>};

    add_whole<s16, u16>(t, "s16", "2");
    add_whole<u16, u16>(t, "u16", "2");
    add_whole<s32, u32>(t, "s32", "4");
    add_whole<u32, u32>(t, "u32", "4");
    add_whole<s64, u64>(t, "s64", "8");
    add_whole<u64, u64>(t, "u64", "8");
    t["mul.wide.s16"] = {"422", mul_wide<s16, s32>};
    t["mul.wide.u16"] = {"422", mul_wide<u16, u32>};
    t["mul.wide.s32"] = {"844", mul_wide<s32, s64>};
    t["mul.wide.u32"] = {"844", mul_wide<u32, u64>};
    t["fma.rn.bf16x2"] = {"4444", three<u32, fma_bf16x2>};
    t["add.f16x2"] = {"444", two<u32, two_f16x2<add<float>>>};
    t["sub.f16x2"] = {"444", two<u32, two_f16x2<sub<float>>>};
    t["mul.f16x2"] = {"444", two<u32, two_f16x2<mul<float>>>};
    t["lop3.b32"] = {"4444n", logic_of_three};
    t["max.u16x2"] = {"444", two<u32, max_u16x2>};
    t["max.s16x2"] = {"444", two<u32, max_s16x2>};

    add_bits<u16>(t, "b16", "2");
    add_bits<u32>(t, "b32", "4");
    add_bits<u64>(t, "b64", "8");
    t["and.pred"] = {"000", of_predicates<and_of<u32>>};
    t["or.pred"] = {"000", of_predicates<or_of<u32>>};
    t["xor.pred"] = {"000", of_predicates<xor_of<u32>>};
    t["not.pred"] = {"00", of_predicates<not_first>};
    t["mov.pred"] = {"00", of_predicates<first_of>};
    t["shf.r.wrap.b32"] = {"4444", three<u32, funnel_right>};
    t["prmt.b32"] = {"4444", three<u32, permute>};
    t["bfi.b32"] = {"44444", bit_insert};
    t["bfi.b64"] = {"88844", bit_insert_64};

    for (const char *sort : {"b", "u", "s", "f"}) {
        add_moves<u16>(t, std::string(sort) + "16", "2");
        add_moves<u32>(t, std::string(sort) + "32", "4");
        add_moves<u64>(t, std::string(sort) + "64", "8");
    }
    // all addresses but shared ones are the host's
    t["cvta.to.global.u64"] = t["cvta.param.u64"] = t["mov.u64"];

    add_conversions<s8>(t, "s8");
    add_conversions<u8>(t, "u8");
    add_conversions<s16>(t, "s16");
    add_conversions<u16>(t, "u16");
    add_conversions<s32>(t, "s32");
    add_conversions<u32>(t, "u32");
    add_conversions<s64>(t, "s64");
    add_conversions<u64>(t, "u64");
    t["cvt.f32.f16"] = {"42", convert<float, u16, f32_of_f16>};
    t["cvt.rn.f16.f32"] = {"24", convert<u16, float, f16_of_f32>};
    t["cvt.rn.bf16.f32"] = {"24", convert<u16, float, bf16_of_f32>};
    t["cvt.f64.f32"] = {"84", convert<double, float, cast<double, float>>};
    t["cvt.rn.f32.f64"] = {"48", convert<float, double, cast<float, double>>};
    t["cvt.rz.f32.f64"] = {"48", convert<float, double, to_f32_down>};
    t["cvt.sat.f32.f32"] = {"44", one<float, saturated>};
    t["cvt.rn.f32.s16"] = {"42", convert<float, s16, cast<float, s16>>};
    t["cvt.rn.f32.s32"] = {"44", convert<float, s32, cast<float, s32>>};
    t["cvt.rn.f32.u16"] = {"42", convert<float, u16, cast<float, u16>>};
    t["cvt.rn.f32.u32"] = {"44", convert<float, u32, cast<float, u32>>};
    t["cvt.rn.f32.u64"] = {"48", convert<float, u64, cast<float, u64>>};
    t["cvt.rn.f64.u32"] = {"84", convert<double, u32, cast<double, u32>>};
    t["cvt.rn.f32.s64"] = {"48", convert<float, s64, cast<float, s64>>};
    t["cvt.rn.f64.s16"] = {"82", convert<double, s16, cast<double, s16>>};
    t["cvt.rn.f64.s32"] = {"84", convert<double, s32, cast<double, s32>>};
    t["cvt.rn.f64.u64"] = {"88", convert<double, u64, cast<double, u64>>};
    t["cvt.rn.f64.s64"] = {"88", convert<double, s64, cast<double, s64>>};
    t["cvt.rni.s32.f32"] = {"44", convert<s32, float, to_whole<s32, float>>};
    t["cvt.rzi.s32.f32"] = {"44", convert<s32, float, cut_to_whole<s32, float>>};
    t["cvt.rni.s32.f64"] = {"48", convert<s32, double, to_whole<s32, double>>};
    t["cvt.rzi.s32.f64"] = {"48", convert<s32, double, cut_to_whole<s32, double>>};
    t["cvt.rni.s64.f64"] = {"88", convert<s64, double, to_whole<s64, double>>};
    t["cvt.rn.satfinite.e4m3x2.f32"] = {"244", two_fp8<4, 3, 0x7e>};
    t["cvt.rn.satfinite.e5m2x2.f32"] = {"244", two_fp8<5, 2, 0>};
    t["cvt.rn.f16x2.f32"] = {"444", halves_of_two<f16_of_f32>};
    t["cvt.rn.bf16x2.f32"] = {"444", halves_of_two<bf16_of_f32>};
    t["cvt.rn.f16x2.e4m3x2"] = {"42", convert<u32, u16, two_f16<4, 3, 0x7e>>};
    t["cvt.rn.f16x2.e5m2x2"] = {"42", convert<u32, u16, two_f16<5, 2, 0>>};

    // hints, and the order of launches, which run one after the other here
    t["griddepcontrol.launch_dependents"] = t["griddepcontrol.wait"] = {"", nothing};
    t["prefetch.tensormap"] = t["prefetch.global.L1"] = t["prefetch.global.L2"] = {"_", nothing};
    t["cp.async.bulk.prefetch.L2.global"] = {"__", nothing};
    t["cp.async.bulk.prefetch.tensor.3d.L2.global"] = {"_", nothing};
    t["setmaxnreg.dec.sync.aligned.u32"] = t["setmaxnreg.inc.sync.aligned.u32"] = {"n", nothing, TOGETHER};

    t["vote.sync.all.pred"] = {"00m", vote_all, TOGETHER};
    t["elect.sync"] = {"40m", elect, TOGETHER};
    t["bar.warp.sync"] = {"m", nothing, TOGETHER};
    t["bar.sync"] = {"4o4", barrier_sync, TOGETHER};
    t["bar.arrive"] = {"44", barrier_arrive, TOGETHER};
    t["barrier.cluster.arrive.relaxed.aligned"] =
        t["barrier.cluster.arrive.release.aligned"] = {"", cluster_arrive, TOGETHER};
    t["barrier.cluster.wait.aligned"] =
        t["barrier.cluster.wait.acquire.aligned"] = {"", cluster_wait, POLLED_TOGETHER};
    t["mapa.shared::cluster.u32"] = {"444", map_address};
    t["fence.proxy.tensormap::generic.release.gpu"] = {"", nothing};
    t["fence.proxy.tensormap::generic.acquire.gpu"] = {"__", nothing};
    t["tensormap.replace.tile.global_dim.global.b1024.b32"] = {"an4", replace_extent};
    t["membar.sys"] = {"", nothing}; // what the host reads, it reads when the kernel is done
    t["fence.mbarrier_init.release.cluster"] = {"", nothing};
    t["fence.proxy.async.shared::cta"] = {"", fence_proxy};

    t["atom.global.max.u32"] = {"4a4", atomic_max<u32, false>};
    t["atom.global.max.u64"] = {"8a8", atomic_max<u64, false>};
    t["atom.shared.max.u32"] = {"4a4", atomic_max<u32, true>};
    t["atom.shared.max.u64"] = {"8a8", atomic_max<u64, true>};
    t["mbarrier.init.shared::cta.b64"] = {"a4", phase_init};
    t["mbarrier.arrive.shared::cta.b64"] = t["mbarrier.arrive.shared::cluster.b64"] = {"_a", phase_arrive};
    t["mbarrier.arrive.expect_tx.shared::cta.b64"] = {"_a4", phase_expect};
    t["mbarrier.try_wait.parity.shared::cta.b64"] = {"0a4", phase_wait, POLLED};
    t["cp.async.ca.shared.global"] = t["cp.async.cg.shared.global"] =
        t["cp.async.cg.shared.global.L2::128B"] = {"[[no4", copy_async};
    t["cp.async.mbarrier.arrive.noinc.shared::cta.b64"] = {"a", phase_arrive_behind_copies};
    t["cp.async.commit_group"] = {"", commit_lanes<&warp::copies>};
    t["cp.async.wait_group"] = {"n", wait_lanes<&warp::copies>};
    t["cp.async.bulk.commit_group"] = {"", commit_lanes<&warp::bulk_copies>};
    t["cp.async.bulk.wait_group"] =
        t["cp.async.bulk.wait_group.read"] = {"n", wait_lanes<&warp::bulk_copies>};

    t["st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32"] = {"[{[", store_async};

    t["ldmatrix.sync.aligned.m8n8.x4.shared.b16"] = {"{a", load_matrices<false>, TOGETHER};
    t["ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"] = {"{a", load_matrices<true>, TOGETHER};
    t["stmatrix.sync.aligned.m8n8.x4.shared.b16"] = {"a{", store_matrices, TOGETHER};
    t["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"] = {"{{{{", multiply<f16_kind>, TOGETHER};
    t["mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"] = {"{{{{", multiply<f16_kind, f16_kind, 1>,
                                                             TOGETHER};
    t["mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"] = {"{{{{", multiply_in_f16<2>, TOGETHER};
    t["mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16"] = {"{{{{", multiply_in_f16<1>, TOGETHER};
    t["mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"] = {"{{{{", multiply<e4m3_kind>, TOGETHER};
    t["mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"] = {"{{{{", multiply<e4m3_kind, e5m2_kind>,
                                                                TOGETHER};
    t["mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32"] = {"{{{{", multiply<e5m2_kind, e4m3_kind>,
                                                                TOGETHER};
    t["mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32"] = {"{{{{", multiply<e5m2_kind>, TOGETHER};
    t["mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"] = {"{{{{", multiply<s8_kind, s8_kind, 1, 8>,
                                                           TOGETHER};
    t["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"] = {"{{{{", multiply<bf16_kind>, TOGETHER};
    t["mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"] = {"{{{{", multiply<tf32_kind>, TOGETHER};
    t["mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"] = {"{{{{", multiply<s8_kind>, TOGETHER};
    add_scaled<e4m3_kind, e4m3_kind>(t, "e4m3.e4m3");
    add_scaled<e4m3_kind, e5m2_kind>(t, "e4m3.e5m2");
    add_scaled<e5m2_kind, e4m3_kind>(t, "e5m2.e4m3");
    add_scaled<e5m2_kind, e5m2_kind>(t, "e5m2.e5m2");
    t["mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"] =
        {"{{{{{h{h", multiply_scaled<e2m1_kind, e2m1_kind, 2, false>, TOGETHER};
    t["mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"] =
        {"{{{{{h{h", multiply_scaled<e2m1_kind, e2m1_kind, 4, true>, TOGETHER};
    t["wgmma.fence.sync.aligned"] = {"", nothing, TOGETHER};
    t["wgmma.commit_group.sync.aligned"] = {"", commit_products, TOGETHER};
    t["wgmma.wait_group.sync.aligned"] = {"n", wait_products, POLLED_TOGETHER};
    return t;
}

// >>those whose names tell more

static bool begins(const std::string &name, const char *with) {
    return name.compare(0, strlen(with), with) == 0;
}

static void take_list(parser &p, op &o, const operand &list, int bytes) {
    o.count = (u16)(list.bracket == '{' ? list.list.size() : 1);
    if (list.bracket == '{')
        for (const operand &one : list.list)
            o.x.push_back(p.take(one, bytes));
    else
        o.x.push_back(p.take(list, bytes));
}

// "ld.volatile.global.v2.u32": what is read, and where
static void decode_memory(parser &p, const statement &s, op &o, bool is_load) {
    std::string type = s.name.substr(s.name.rfind('.') + 1);
    bool is_shared = s.name.find(".shared") != std::string::npos;
    o.bytes = (u16)(atoi(type.c_str() + 1) / 8);
    o.is_signed = type[0] == 's';
    o.run = !is_load                                     ? (is_shared ? store_shared : store_global)
            : is_shared                                  ? load_shared
            : s.name.find(".param") != std::string::npos ? load_parameter
            : s.name.find(".const") != std::string::npos ? load_constant
                                                         : load_global;
    if (!is_load)
        p.take_address(o, s.operands.at(0));
    take_list(p, o, s.operands.at(is_load ? 0 : 1), o.bytes);
    if (is_load)
        p.take_address(o, s.operands.at(1));
}

// halves to one register or back
static void decode_halves(parser &p, const statement &s, op &o, int bytes) {
    bool joins = s.operands.at(1).bracket == '{';
    const operand &list = s.operands[joins], &whole = s.operands[!joins];
    if (list.list.size() != 2 || (bytes != 4 && bytes != 8))
        fail("two halves of %d bytes are not known", bytes);
    o.run = bytes == 4 ? (joins ? join<u16, u32> : part<u16, u32>) : joins ? join<u32, u64> : part<u32, u64>;
    if (joins)
        o.x.push_back(p.take_exact(whole, bytes));
    for (const operand &half : list.list)
        o.x.push_back(p.take_exact(half, bytes / 2));
    if (!joins)
        o.x.push_back(p.take_exact(whole, bytes));
}

// d|p, a, b, c, lanes: the predicate goes last
static void decode_shuffle(parser &p, const statement &s, op &o) {
    size_t has_predicate = s.operands.size() == 6;
    o.kind = TOGETHER;
    o.members = 4;
    o.run = begins(s.name, "shfl.sync.bfly") ? shuffle<from_other_side> : shuffle<from_index>;
    o.x.push_back(p.take_exact(s.operands.at(0), 4));
    for (size_t i = 1; i < 5; i++)
        o.x.push_back(p.take_exact(s.operands.at(i + has_predicate), 4));
    if (has_predicate)
        o.x.push_back(p.take_exact(s.operands[1], 0));
}

// {sums}, descriptor of A, of B, adds, sign of A, of B, and in 16 bits transposed A, B; or, in 16 bits, A as {four registers}, which is
// never transposed
static void decode_group_product(parser &p, const statement &s, op &o) {
    static const struct {
        const char *form;
        bool in_registers;
        void (*run)(warp &w, const op &o, u32 lanes);
        size_t numbers;
    } forms[] = {{"k16.f32.bf16.bf16", false, multiply_group<bf16_kind>, 4},
                 {"k16.f32.f16.f16", false, multiply_group<f16_kind>, 4},
                 {"k8.f32.tf32.tf32", false, multiply_group<tf32_kind>, 2},
                 {"k32.f32.e4m3.e4m3", false, multiply_group<e4m3_kind>, 2},
                 {"k32.f32.e4m3.e5m2", false, multiply_group<e4m3_kind, e5m2_kind>, 2},
                 {"k32.f32.e5m2.e4m3", false, multiply_group<e5m2_kind, e4m3_kind>, 2},
                 {"k32.f32.e5m2.e5m2", false, multiply_group<e5m2_kind>, 2},
                 {"k16.f32.bf16.bf16", true, multiply_group<bf16_kind, bf16_kind, true>, 3},
                 {"k16.f32.f16.f16", true, multiply_group<f16_kind, f16_kind, true>, 3}};
    const size_t count = sizeof forms / sizeof *forms;
    size_t at = s.name.find(".m64n") + 5, form = 0;
    bool in_registers = s.operands.at(1).bracket == '{';
    int n = atoi(s.name.c_str() + at);
    at = s.name.find('k', at);
    while (form < count && (at == std::string::npos || s.name.substr(at) != forms[form].form ||
                            forms[form].in_registers != in_registers))
        form++;
    take_list(p, o, s.operands.at(0), 4);
    if (form == count || o.count != n / 2 || s.operands.size() != 4 + forms[form].numbers)
        fail("this form of wgmma is not known");
    o.kind = TOGETHER;
    o.run = forms[form].run;
    if (in_registers && s.operands[1].list.size() != 4)
        fail("this form of wgmma is not known");
    for (const operand &one : s.operands[1].list)
        o.x.push_back(p.take_exact(one, 4));
    if (!in_registers)
        o.x.push_back(p.take_exact(s.operands[1], 8));
    o.x.push_back(p.take_exact(s.operands[2], 8));
    o.x.push_back(p.take_exact(s.operands[3], 0));
    for (size_t i = 0; i < forms[form].numbers; i++)
        o.numbers[i] = (s64)p.number(s.operands[4 + i].word);
}

// [map, {coordinates}] among the operands
static void decode_box(parser &p, const statement &s, op &o) {
    bool is_load = s.name.find(".shared::cluster.global.") != std::string::npos;
    o.run = is_load ? load_tensor : store_tensor;
    for (size_t i = 0; i < s.operands.size(); i++) {
        const operand &one = s.operands[i];
        if (one.bracket && one.list.size() == 2) {
            o.x.push_back(p.take_exact(one.list[0], 8));
            o.numbers[0] = (s64)one.list[1].list.size();
            for (const operand &coordinate : one.list[1].list)
                o.x.push_back(p.take_exact(coordinate, 4));
        } else if (one.bracket) {
            o.x.push_back(p.take_exact(one.list.at(0), 4));
        } else {
            o.x.push_back(p.take_exact(one, 2));
        }
    }
}

inline void parser::decode(const statement &s, op &o) {
    static const table known = make_table();
    bool has_list = s.operands.size() == 2 && (s.operands[0].bracket == '{' || s.operands[1].bracket == '{');
    if (begins(s.name, "ld.") || (begins(s.name, "st.") && !begins(s.name, "st.async.")))
        return decode_memory(*this, s, o, s.name[0] == 'l');
    if (begins(s.name, "mov.b") && has_list)
        return decode_halves(*this, s, o, atoi(s.name.c_str() + 5) / 8);
    if (begins(s.name, "shfl.sync.bfly.b32") || begins(s.name, "shfl.sync.idx.b32"))
        return decode_shuffle(*this, s, o);
    if (begins(s.name, "wgmma.mma_async.sync.aligned.m64n"))
        return decode_group_product(*this, s, o);
    if (begins(s.name, "cp.async.bulk.tensor."))
        return decode_box(*this, s, o);
    table::const_iterator found = known.find(s.name);
    if (found == known.end())
        fail("the operation %s is unknown", s.name.c_str());
    size_t given = 0, numbers = 0;
    bool may_end = false;
    o.run = found->second.run;
    o.kind = found->second.kind;
    for (char letter : found->second.operands) {
        if (letter == 'o') {
            may_end = true;
            continue;
        }
        if (given == s.operands.size()) {
            if (!may_end)
                fail("%s has too few operands", s.name.c_str());
            break;
        }
        const operand &one = s.operands[given++];
        switch (letter) {
        case '_':
            break;
        case '{':
        case 'h':
            for (const operand &part : one.list)
                o.x.push_back(take_exact(part, letter == '{' ? 4 : 2));
            break;
        case 'a':
        case '[':
            take_address(o, one);
            if (letter == '[' && o.offset)
                fail("an offset where none is known");
            break;
        case 'n':
            o.numbers[numbers++] = (s64)number(one.word);
            break;
        case 'm':
            o.members = (s32)o.x.size();
            o.x.push_back(take_exact(one, 4));
            break;
        case 'w':
            o.x.push_back(take(one, 8));
            break;
        default:
            o.x.push_back(take_exact(one, letter - '0'));
        }
    }
    if (given != s.operands.size())
        fail("%s has too many operands", s.name.c_str());
}

#endif
