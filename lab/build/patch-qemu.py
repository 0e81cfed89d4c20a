#!/usr/bin/env python3
"""patch-qemu.py SRCDIR: teach QEMU's TCG (source of 7.2, Debian's) a table of MSRs and CPUID bits, read from the
file that $QEMU_LAB_MSR names. Only adds code; with the variable unset QEMU behaves as before. Lines of the file:
  msr NUMBER VALUE [rw|ro|gp|cnt|pkg] one register per vCPU; ro: a write faults; gp: any access faults;
                                      cnt: a counter, VALUE/1024 of the TSC; pkg: one register for all vCPUs
  cpuid LEAF SUBLEAF eax|ebx|ecx|edx MASK   bits to set
  link SPEED LANES                    what every PCIe endpoint can do (SPEED 1 is 2.5 GT/s, 3 is 8 GT/s; a device with
                                      the old form of the capability shows 5 GT/s at most); its link stays at
                                      2.5 GT/s on one lane, as after bad training
  clock NUMBER BASE TOP               with $QEMU_LAB_CLOCK set, register NUMBER (laid out as IA32_HWP_REQUEST) asks for the
                                      clock of its vCPU, from which APERF (0xe8) and the vCPU's speed follow; BASE is
                                      the clock of MPERF, TOP that of a vCPU at full speed (all in steps of 100 MHz)
  strict                              any other MSR that QEMU does not know faults, as on hardware
The values travel in snapshots (a vmstate section, sent only when there is a table).
With a table in use MWAIT accepts ECX=1 and sleeps 0.3 ms at most, so that intel_idle works."""
import sys
src = sys.argv[1]
def edit(path, *pairs):
    s = open(src + '/' + path).read()
    for old, new in pairs:
        assert s.count(old) >= 1, (path, old)
        s = s.replace(old, new, 1)
    open(src + '/' + path, 'w').write(s)

TABLE = r'''
/* lab: MSRs from $QEMU_LAB_MSR */
#define LAB_MAX 128
#define LAB_CPUS 64
enum { LAB_RW, LAB_RO, LAB_GP, LAB_CNT, LAB_PKG };
static struct { uint32_t msr; uint64_t val; int mode; } lab_msr[LAB_MAX];
static int lab_n = -1, lab_strict, lab_clock = -1, lab_aperf = -1;
static unsigned lab_base = 1, lab_top = 1;
typedef struct LabState { uint64_t val[LAB_CPUS][LAB_MAX]; } LabState;
static LabState lab_state;
#define lab_val lab_state.val
static void lab_load(void)
{
    const char *fn = getenv("QEMU_LAB_MSR");
    char line[256], mode[16];
    unsigned long long m, v, clock = 0;
    unsigned base, top;
    int n = 0, i, j;
    FILE *f = fn ? fopen(fn, "r") : NULL;
    while (f && fgets(line, sizeof(line), f)) {
        mode[0] = 0;
        if (!strncmp(line, "strict", 6)) {
            lab_strict = 1;
        } else if (sscanf(line, "clock %lli %u %u", &m, &base, &top) == 3) {
            if (getenv("QEMU_LAB_CLOCK") && base && top) {
                clock = m;
                lab_base = base;
                lab_top = top;
            }
        } else if (n < LAB_MAX - 2 && sscanf(line, "msr %lli %lli %15s", &m, &v, mode) >= 2) {
            lab_msr[n].msr = m;
            lab_msr[n].val = v;
            lab_msr[n].mode = !strcmp(mode, "ro") ? LAB_RO : !strcmp(mode, "gp") ? LAB_GP :
                              !strcmp(mode, "cnt") ? LAB_CNT : !strcmp(mode, "pkg") ? LAB_PKG : LAB_RW;
            n++;
        }
    }
    if (f) {
        fclose(f);
    }
    for (i = 0; i < LAB_CPUS; i++) {
        for (j = 0; j < n; j++) {
            lab_val[i][j] = lab_msr[j].val;
        }
    }
    for (j = 0; clock && j < n; j++) {
        if (lab_msr[j].msr == clock) {
            lab_clock = j;
        } else if (lab_msr[j].msr == 0xe8) {
            lab_aperf = j;
        }
    }
    qatomic_store_release(&lab_n, n);
}
static int lab_find(uint32_t msr)
{
    static int once;
    int i;
    if (qatomic_load_acquire(&lab_n) < 0) {
        if (qatomic_xchg(&once, 1) == 0) {
            lab_load();
        }
        while (qatomic_load_acquire(&lab_n) < 0) {
            ;
        }
    }
    for (i = 0; i < lab_n; i++) {
        if (lab_msr[i].msr == msr) {
            return i;
        }
    }
    return -1;
}
static int lab_slot(CPUState *cs, int k)
{
    return lab_msr[k].mode == LAB_PKG ? 0 : cs->cpu_index % LAB_CPUS;
}
static const VMStateDescription lab_vmstate = {
    .name = "lab-msr",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (VMStateField[]) {
        VMSTATE_UINT64_2DARRAY(val, LabState, LAB_CPUS, LAB_MAX),
        VMSTATE_END_OF_LIST()
    }
};
/*
 * The clock a vCPU runs at. What is asked for exactly is given; else the preference (0 speed, 255 energy) chooses between
 * the highest and the lowest clock that are allowed. Real hardware looks at the load too.
 */
static unsigned lab_ratio(CPUState *cs)
{
    uint64_t v = lab_val[lab_slot(cs, lab_clock)][lab_clock];
    unsigned low = MAX(v & 0xff, 1), high = MIN(MAX(v >> 8 & 0xff, low), lab_top), want = v >> 16 & 0xff;
    want = want ? want : high - (high - MIN(low, high)) * (v >> 24 & 0xff) / 256;
    return MIN(MAX(want, MIN(low, high)), high);
}
/* What APERF counted up to now; the last two places of a vCPU hold the count and its moment. */
static uint64_t lab_cycles(CPUX86State *env)
{
    CPUState *cs = env_cpu(env);
    uint64_t *at = lab_val[cs->cpu_index % LAB_CPUS] + LAB_MAX - 2, now = cpu_get_tsc(env);
    at[0] += (uint64_t)((unsigned __int128)(now - at[1]) * lab_ratio(cs) / lab_base);
    at[1] = now;
    return at[0];
}
/* For the time that a vCPU has worked it now waits, in proportion to the clock that it lacks. */
static void lab_wait(CPUState *cs, run_on_cpu_data unused)
{
    static __thread int64_t before;
    struct timespec t;
    int64_t used, left, end;
    unsigned ratio = lab_ratio(cs);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    used = t.tv_sec * NANOSECONDS_PER_SECOND + t.tv_nsec;
    left = before ? (used - before) * (lab_top - ratio) / ratio : 0;
    end = qemu_clock_get_ns(QEMU_CLOCK_REALTIME) + left;
    while (left > 0 && !cs->stop) {
        if (left > SCALE_MS) {
            qemu_cond_timedwait_iothread(cs->halt_cond, left / SCALE_MS);
        } else {
            qemu_mutex_unlock_iothread();
            g_usleep(left / SCALE_US);
            qemu_mutex_lock_iothread();
        }
        left = end - qemu_clock_get_ns(QEMU_CLOCK_REALTIME);
    }
    before = used;
    qatomic_set(&cs->throttle_thread_scheduled, 0);
}
static QEMUTimer *lab_timer;
static void lab_tick(void *unused)
{
    CPUState *cs;
    CPU_FOREACH(cs) {
        /* A vCPU at full speed is told too, so that its work is not made up for later. */
        if (!qatomic_xchg(&cs->throttle_thread_scheduled, 1)) {
            async_run_on_cpu(cs, lab_wait, RUN_ON_CPU_NULL);
        }
    }
    timer_mod(lab_timer, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL_RT) + 5 * SCALE_MS);
}
void lab_register(void);
void lab_register(void)
{
    static int done;
    if (!done && (lab_find(0), lab_n > 0)) {
        vmstate_register(NULL, 0, &lab_vmstate, &lab_state);
        if (lab_clock >= 0) {
            lab_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL_RT, lab_tick, NULL);
            timer_mod(lab_timer, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL_RT) + 5 * SCALE_MS);
        }
    }
    done = 1;
}

'''
W = 'void helper_wrmsr(CPUX86State *env)\n'
SW = '    switch ((uint32_t)env->regs[R_ECX]) {\n'
f = 'target/i386/tcg/sysemu/misc_helper.c'
edit(f, (W, TABLE + W), ('#include "exec/exec-all.h"\n', '#include "exec/exec-all.h"\n#include "migration/vmstate.h"\n#include "qemu/timer.h"\n'))
s = open(src + '/' + f).read()
i, j, k = s.index(W), s.index('void helper_rdmsr('), s.index('G_NORETURN void helper_mwait(')
head, wr, rd, mw = s[:i], s[i:j], s[j:k], s[k:]
wr = wr.replace(SW, '''    {
        int k = lab_find((uint32_t)env->regs[R_ECX]);
        if (k >= 0) {
            if (lab_msr[k].mode == LAB_GP || lab_msr[k].mode == LAB_RO) {
                goto error;
            }
            if (k == lab_clock) {
                lab_cycles(env);
            }
            lab_val[lab_slot(cs, k)][k] = val;
            return;
        }
    }
''' + SW, 1)
X = '        /* XXX: exception? */\n'
assert X in wr and X in rd and SW in rd
k = wr.rindex(X)
wr = wr[:k] + wr[k:].replace(X, '        if (lab_strict) {\n            goto error;\n        }\n', 1)
rd = rd.replace(SW, '''    {
        int k = lab_find((uint32_t)env->regs[R_ECX]);
        if (k >= 0) {
            if (lab_msr[k].mode == LAB_GP) {
                raise_exception_err_ra(env, EXCP0D_GPF, 0, GETPC());
            }
            val = lab_val[lab_slot(env_cpu(env), k)][k];
            if (lab_clock >= 0 && k == lab_aperf) {
                val = lab_cycles(env);
            } else if (lab_msr[k].mode == LAB_CNT) {
                val = (uint64_t)(((unsigned __int128)cpu_get_tsc(env) * lab_msr[k].val) >> 10);
            }
            env->regs[R_EAX] = (uint32_t)(val);
            env->regs[R_EDX] = (uint32_t)(val >> 32);
            return;
        }
    }
''' + SW, 1)
k = rd.rindex(X)
rd = rd[:k] + rd[k:].replace(X, '        if (lab_strict) {\n            raise_exception_err_ra(env, EXCP0D_GPF, 0, GETPC());\n        }\n', 1)
A, B = '    if ((uint32_t)env->regs[R_ECX] != 0) {\n', '    if (cs->cpu_index != 0 || CPU_NEXT(cs) != NULL) {\n'
assert A in mw and B in mw
mw = mw.replace(A, '    int lab = lab_find(0) == -1 && lab_n > 0;\n    if (!lab && (uint32_t)env->regs[R_ECX] != 0) {\n', 1)
mw = mw.replace(B, '''    if (lab && !qatomic_read(&cs->interrupt_request)) {
        g_usleep(300);   /* Linux waits with interrupts off, where HLT would never wake */
    }
    if (lab || cs->cpu_index != 0 || CPU_NEXT(cs) != NULL) {
''', 1)
open(src + '/' + f, 'w').write(head + wr + rd + mw)

SIG = '''(CPUX86State *env, uint32_t index, uint32_t count,
                   uint32_t *eax, uint32_t *ebx,
                   uint32_t *ecx, uint32_t *edx)
'''
edit('target/i386/cpu.c', ('void cpu_x86_cpuid' + SIG + '{\n', 'static void lab_cpuid0' + SIG.rstrip() + r''';
/* lab: CPUID bits from $QEMU_LAB_MSR */
void lab_register(void);
static struct { uint32_t leaf, sub, or; int reg; } lab_cpuid[64];
static int lab_cpuid_n = -1;
void cpu_x86_cpuid''' + SIG + r'''{
    int i;
    if (lab_cpuid_n < 0) {
        const char *fn = getenv("QEMU_LAB_MSR");
        FILE *f = fn ? fopen(fn, "r") : NULL;
        char line[256], r[8];
        unsigned long long l, u, o;
        int n = 0;
        while (f && n < 64 && fgets(line, sizeof(line), f)) {
            if (sscanf(line, "cpuid %lli %lli %3s %lli", &l, &u, r, &o) == 4) {
                lab_cpuid[n].leaf = l;
                lab_cpuid[n].sub = u;
                lab_cpuid[n].or = o;
                lab_cpuid[n].reg = r[1] - 'a';
                n++;
            }
        }
        if (f) {
            fclose(f);
        }
        lab_cpuid_n = n;
    }
    lab_cpuid0(env, index, count, eax, ebx, ecx, edx);
    for (i = 0; i < lab_cpuid_n; i++) {
        if (lab_cpuid[i].leaf == index && lab_cpuid[i].sub == count) {
            uint32_t *t[4] = { eax, ebx, ecx, edx };
            *t[lab_cpuid[i].reg & 3] |= lab_cpuid[i].or;
        }
    }
}

static void lab_cpuid0''' + SIG + '{\n'))
edit('target/i386/cpu.c', ('    mce_init(cpu);\n', '    mce_init(cpu);\n    lab_register();\n'))
edit('hw/pci/pcie.c', ('static void\npcie_cap_v1_fill(', r'''/* lab: the link that endpoints can have, from $QEMU_LAB_MSR */
static void lab_link(uint8_t *exp_cap, uint8_t type, uint8_t version)
{
    const char *fn = getenv("QEMU_LAB_MSR");
    FILE *f = fn && type == PCI_EXP_TYPE_ENDPOINT ? fopen(fn, "r") : NULL;
    char line[256];
    unsigned speed, lanes;
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "link %u %u", &speed, &lanes) == 2) {
            uint32_t cap = pci_get_long(exp_cap + PCI_EXP_LNKCAP);
            if (version == PCI_EXP_FLAGS_VER2) {
                pci_set_long(exp_cap + PCI_EXP_LNKCAP2, ((1u << speed) - 1) << 1);
            } else {
                speed = MIN(speed, 2);
            }
            cap &= ~(PCI_EXP_LNKCAP_MLW | PCI_EXP_LNKCAP_SLS);
            pci_set_long(exp_cap + PCI_EXP_LNKCAP, cap | lanes << 4 | speed);
        }
    }
    if (f) {
        fclose(f);
    }
}

static void
pcie_cap_v1_fill('''), ('''    pci_set_word(exp_cap + PCI_EXP_LNKSTA,
                 QEMU_PCI_EXP_LNKSTA_NLW(''', '''    lab_link(exp_cap, type, version);
    pci_set_word(exp_cap + PCI_EXP_LNKSTA,
                 QEMU_PCI_EXP_LNKSTA_NLW('''))
edit('pc-bios/meson.build', ('if unpack_edk2_blobs\n', 'if false\n'))
