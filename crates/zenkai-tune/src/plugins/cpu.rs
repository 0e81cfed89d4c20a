//! `cpu`: clocks, their preferences, and how deep CPUs may sleep (Documentation/admin-guide/pm/).

use std::collections::BTreeSet;

use zenkai_host::Knob;

use super::{
    OptionSpec, Plugin, Wishes,
    shared::{alternatives, switch, whole},
};
use crate::{Fault, Hold, Instance, OptionText, Scene, Want};

mod latency;

pub(super) static PLUGIN: Plugin = Plugin {
    name: "cpu",
    summary: "Sets governors, clock limits, energy preferences and wake-up latency",
    options: &[
        OptionSpec {
            name: "governor",
            help: "A cpufreq governor, or several as a|b, best first",
            default: "",
        },
        OptionSpec {
            name: "energy_performance_preference",
            help: "A preference or several as a|b",
            default: "",
        },
        OptionSpec {
            name: "energy_perf_bias",
            help: "performance, balance-performance, normal, balance-power, power or 0 to 15; several as a|b",
            default: "",
        },
        OptionSpec { name: "boost", help: "Whether clocks above the nominal one are used", default: "" },
        OptionSpec { name: "min_perf_pct", help: "Lowest clock in percent of the highest", default: "" },
        OptionSpec { name: "max_perf_pct", help: "Highest clock in percent of the highest", default: "" },
        OptionSpec { name: "no_turbo", help: "1 keeps clocks at or below the nominal one", default: "" },
        OptionSpec { name: "sampling_down_factor", help: "Periods the highest clock is kept", default: "" },
        OptionSpec {
            name: "pm_qos_resume_latency_us",
            help: "Largest wake-up latency of a CPU in µs; 0 for no limit, n/a for no sleep at all",
            default: "",
        },
        OptionSpec {
            name: "force_latency",
            help: "Largest wake-up latency of the machine: µs, cstate.id:N, cstate.name:X, each with _no_zero; a|b",
            default: "",
        },
        OptionSpec { name: "load_threshold", help: "Load that switches to latency_low", default: "0.2" },
        OptionSpec { name: "latency_low", help: "Wake-up latency in µs under load", default: "100" },
        OptionSpec { name: "latency_high", help: "Wake-up latency in µs otherwise", default: "1000" },
    ],
    devices: Some(devices),
    plan,
};

const CPUS: &str = "/sys/devices/system/cpu";

fn devices(scene: &Scene) -> Vec<String> {
    scene.online_cpus().iter().map(|cpu| format!("cpu{cpu}")).collect()
}

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    for option in &instance.options {
        match option.name.as_str() {
            "governor" => {
                choose(scene, instance, option, "scaling_governor", "scaling_available_governors", wishes);
            }
            "energy_performance_preference" => choose(
                scene,
                instance,
                option,
                "energy_performance_preference",
                "energy_performance_available_preferences",
                wishes,
            ),
            "energy_perf_bias" => bias(scene, instance, option, wishes),
            "boost" => boost(scene, instance, option, wishes),
            "min_perf_pct" | "max_perf_pct" | "no_turbo" => intel_pstate(scene, option, wishes),
            "sampling_down_factor" => sampling_down_factor(scene, instance, option, wishes),
            "pm_qos_resume_latency_us" => resume_latency(scene, instance, option, wishes),
            "force_latency" => latency::force(scene, option, wishes),
            "load_threshold" | "latency_low" | "latency_high" => dynamic(instance, option, wishes),
            _ => {}
        }
    }
}

/// The cpufreq policies of the instance's CPUs, each once: CPUs that share a clock share the files.
fn policies(scene: &Scene, instance: &Instance) -> Vec<String> {
    let dirs = instance.devices.iter().filter_map(|cpu| {
        let dir = format!("{CPUS}/{cpu}/cpufreq");
        scene.host.resolve(&dir).ok().or_else(|| scene.exists(&dir).then_some(dir))
    });
    dirs.collect::<BTreeSet<String>>().into_iter().collect()
}

fn name_of(policy: &str) -> &str {
    policy.rsplit('/').next().unwrap_or_default()
}

/// The first of the asked values that the policy offers. tuned tries a number for the preference too.
fn choose(
    scene: &Scene,
    instance: &Instance,
    option: &OptionText,
    file: &str,
    offered: &str,
    wishes: &mut Wishes,
) {
    let asked = alternatives(&option.value);
    if asked.is_empty() {
        wishes.cannot(option, "", Fault::Profile, format!("{} names nothing", option.name));
        return;
    }
    let mut found = false;
    for policy in policies(scene, instance) {
        let path = format!("{policy}/{file}");
        if !scene.exists(&path) {
            continue;
        }
        found = true;
        let offered = scene.text(&format!("{policy}/{offered}"));
        let possible = |value: &&String| {
            let Some(offered) = &offered else { return true };
            let number = file != "scaling_governor" && whole(value, 0, 255).is_ok();
            number || offered.split_whitespace().any(|one| one == value.as_str())
        };
        let choices: Vec<String> = asked.iter().filter(possible).cloned().collect();
        if choices.is_empty() {
            let why = format!("only these exist: {}", offered.unwrap_or_default());
            wishes.cannot(option, name_of(&policy), Fault::Machine, why);
        } else {
            let knob = Knob::Attribute(path);
            // tuned looks for the first possible governor, so an already set later one is not good enough.
            if file == "scaling_governor" {
                wishes.set(option, name_of(&policy), knob, choices[0].as_str());
            } else {
                wishes.want(option, name_of(&policy), Want::SetFirst { knob, choices });
            }
        }
    }
    if !found {
        wishes.cannot(option, "", Fault::Machine, format!("the CPUs have no {file}"));
    }
}

/// The words of arch/x86/kernel/cpu/intel_epb.c.
const BIASES: [(&str, &str); 5] = [
    ("performance", "0"),
    ("balance-performance", "4"),
    ("normal", "6"),
    ("balance-power", "8"),
    ("power", "15"),
];

fn bias(scene: &Scene, instance: &Instance, option: &OptionText, wishes: &mut Wishes) {
    // x86_energy_perf_policy(8) has `powersave` where the kernel has `power`; the file shows numbers.
    let number = |word: String| {
        let word = if word == "powersave" { "power" } else { &word };
        let named = BIASES.iter().find(|(name, _)| *name == word).map(|(_, number)| (*number).to_owned());
        named.or_else(|| whole(word, 0, 15).ok().map(|number| number.to_string()))
    };
    let choices: Vec<String> = alternatives(&option.value).into_iter().filter_map(number).collect();
    if choices.is_empty() {
        let why = format!("`{}` is no energy_perf_bias", option.value);
        wishes.cannot(option, "", Fault::Profile, why);
        return;
    }
    let mut found = false;
    for cpu in &instance.devices {
        let path = format!("{CPUS}/{cpu}/power/energy_perf_bias");
        if scene.exists(&path) {
            found = true;
            wishes.want(
                option,
                cpu,
                Want::SetFirst { knob: Knob::Attribute(path), choices: choices.clone() },
            );
        }
    }
    if !found {
        wishes.cannot(option, "", Fault::Machine, "the CPUs have no energy_perf_bias");
    }
}

fn boost(scene: &Scene, instance: &Instance, option: &OptionText, wishes: &mut Wishes) {
    let Some(on) = switch(&option.value) else {
        wishes.cannot(option, "", Fault::Profile, format!("`{}` is neither 0 nor 1", option.value));
        return;
    };
    let value = if on { "1" } else { "0" };
    let own: Vec<String> = policies(scene, instance)
        .into_iter()
        .filter(|policy| scene.exists(&format!("{policy}/boost")))
        .collect();
    for policy in &own {
        wishes.set(option, name_of(policy), Knob::Attribute(format!("{policy}/boost")), value);
    }
    // Before Linux 6.6 there is only the switch for the whole machine.
    let all = format!("{CPUS}/cpufreq/boost");
    if own.is_empty() && scene.exists(&all) {
        wishes.set(option, "", Knob::Attribute(all), value);
    } else if own.is_empty() {
        wishes.cannot(option, "", Fault::Machine, "the clock driver has no boost switch");
    }
}

fn intel_pstate(scene: &Scene, option: &OptionText, wishes: &mut Wishes) {
    let highest = if option.name == "no_turbo" { 1 } else { 100 };
    if let Err(why) = whole(&option.value, 0, highest) {
        wishes.cannot(option, "", Fault::Profile, why);
        return;
    }
    let path = format!("{CPUS}/intel_pstate/{}", option.name);
    if scene.exists(&path) {
        wishes.set(option, "", Knob::Attribute(path), option.value.trim());
    } else {
        wishes.cannot(option, "", Fault::Machine, "the clock driver is not intel_pstate");
    }
}

fn sampling_down_factor(scene: &Scene, instance: &Instance, option: &OptionText, wishes: &mut Wishes) {
    // MAX_SAMPLING_DOWN_FACTOR in drivers/cpufreq/cpufreq_ondemand.c.
    if let Err(why) = whole(&option.value, 1, 100_000) {
        wishes.cannot(option, "", Fault::Profile, why);
        return;
    }
    let mut paths = BTreeSet::new();
    for policy in policies(scene, instance) {
        let Some(governor) = scene.text(&format!("{policy}/scaling_governor")) else { continue };
        // One directory for the machine, or one a policy where those have their own tunables.
        for dir in [format!("{CPUS}/cpufreq/{governor}"), format!("{policy}/{governor}")] {
            let path = format!("{dir}/sampling_down_factor");
            if scene.exists(&path) {
                paths.insert(path);
            }
        }
    }
    if paths.is_empty() {
        wishes.cannot(option, "", Fault::Machine, "the governor has no sampling_down_factor");
    }
    for path in paths {
        wishes.set(option, "", Knob::Attribute(path), option.value.trim());
    }
}

fn resume_latency(scene: &Scene, instance: &Instance, option: &OptionText, wishes: &mut Wishes) {
    let value = option.value.trim();
    if value != "n/a"
        && let Err(why) = whole(value, 0, i64::from(i32::MAX) - 1)
    {
        wishes.cannot(option, "", Fault::Profile, why);
        return;
    }
    let mut found = false;
    for cpu in &instance.devices {
        let path = format!("{CPUS}/{cpu}/power/pm_qos_resume_latency_us");
        if scene.exists(&path) {
            found = true;
            wishes.set(option, cpu, Knob::Attribute(path), value);
        }
    }
    if !found {
        wishes.cannot(option, "", Fault::Machine, "this kernel has no pm_qos_resume_latency_us");
    }
}

fn dynamic(instance: &Instance, option: &OptionText, wishes: &mut Wishes) {
    let number = option.value.trim().parse::<f64>();
    if !number.is_ok_and(|number| number.is_finite() && number >= 0.0) {
        wishes.cannot(option, "", Fault::Profile, format!("`{}` is no number", option.value));
    } else if instance.option("force_latency").is_some() {
        wishes.want(option, "", Want::Leave("force_latency is set, so the load does not count".into()));
    } else {
        wishes.hold(option, "", Hold::Dynamic);
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::plugins::testing::Bench;

    fn two_cpus_one_clock() -> Bench {
        let policy = "/sys/devices/system/cpu/cpufreq/policy0";
        let host = FakeHost::new(&[
            ("/sys/devices/system/cpu/online", "0-1\n"),
            (&format!("{policy}/scaling_governor"), "powersave\n"),
            (&format!("{policy}/scaling_available_governors"), "performance powersave\n"),
            (&format!("{policy}/energy_performance_preference"), "balance_power\n"),
            (
                &format!("{policy}/energy_performance_available_preferences"),
                "default performance balance_performance balance_power power\n",
            ),
            ("/sys/devices/system/cpu/cpu0/power/energy_perf_bias", "6\n"),
            ("/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us", "0\n"),
            ("/sys/devices/system/cpu/cpu0/cpuidle/state0/name", "POLL\n"),
            ("/sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "0\n"),
            ("/sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C1E\n"),
            ("/sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "10\n"),
            ("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"),
            ("/sys/devices/system/cpu/cpufreq/boost", "1\n"),
        ])
        .link("/sys/devices/system/cpu/cpu0/cpufreq", policy)
        .link("/sys/devices/system/cpu/cpu1/cpufreq", policy);
        Bench::on("cpu", host)
    }

    #[test]
    fn a_shared_policy_is_one_knob() {
        let plan = two_cpus_one_clock().plan(&[
            ("governor", "schedutil|performance"),
            ("energy_performance_preference", "performance|balance_power"),
            ("energy_perf_bias", "powersave|power"),
            ("no_turbo", "0"),
            ("boost", "1"),
        ]);
        assert_eq!(
            plan.lines(),
            "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor: powersave -> performance\n\
             /sys/devices/system/cpu/cpufreq/policy0/energy_performance_preference: balance_power\n\
             /sys/devices/system/cpu/cpu0/power/energy_perf_bias: 6 -> 15\n\
             /sys/devices/system/cpu/intel_pstate/no_turbo: 0\n\
             /sys/devices/system/cpu/cpufreq/boost: 1\n"
        );
    }

    #[test]
    fn latencies() {
        let bench = two_cpus_one_clock();
        let held = |value: &str| bench.plan(&[("force_latency", value)]).lines();
        assert_eq!(held("3"), "hold: CpuDmaLatency { latency_us: 3 }\n");
        assert_eq!(held("cstate.id_no_zero:0|cstate.id:1"), "hold: CpuDmaLatency { latency_us: 10 }\n");
        assert_eq!(held("cstate.name:C9|cstate.name:C1E"), "hold: CpuDmaLatency { latency_us: 10 }\n");
        assert!(held("cstate.id:7").starts_with("cannot: "));
        assert!(held("none").starts_with("leave: "));
        assert_eq!(bench.plan(&[("load_threshold", "0.2")]).lines(), "hold: Dynamic\n");
        assert_eq!(bench.plan(&[("force_latency", "soon"), ("latency_low", "-1")]).mistakes().count(), 2);
    }

    #[test]
    fn nonsense_and_absence() {
        let options = [
            ("governor", "|"),
            ("boost", "x"),
            ("no_turbo", "2"),
            ("min_perf_pct", "101"),
            ("energy_perf_bias", "16"),
            ("sampling_down_factor", "0"),
            ("pm_qos_resume_latency_us", "-1"),
        ];
        assert_eq!(two_cpus_one_clock().plan(&options).mistakes().count(), options.len());
        let bare = Bench::new("cpu", &[("/sys/devices/system/cpu/online", "0\n")]);
        let plan = bare.plan(&[("governor", "performance"), ("boost", "1"), ("max_perf_pct", "100")]);
        assert_eq!(
            plan.lines(),
            "cannot: the CPUs have no scaling_governor\ncannot: the clock driver has no boost switch\n\
             cannot: the clock driver is not intel_pstate\n"
        );
    }
}
