//! Where plugins put what they want.

use zenkai_facts::CpuSet;
use zenkai_host::{Act, Knob, Value};

use super::cpus::parse_cpus;
use crate::{Fault, Hold, Instance, OptionText, Scene, Want, When, Wish};

/// The wishes of one instance.
pub struct Wishes<'i> {
    instance: &'i Instance,
    list: Vec<Wish>,
}

impl<'i> Wishes<'i> {
    /// An empty list for this instance.
    pub fn new(instance: &'i Instance) -> Self {
        Self { instance, list: Vec::new() }
    }

    /// What was wished so far.
    pub fn into_list(self) -> Vec<Wish> {
        self.list
    }

    /// Any want; the other methods are shorter ways to say the common ones. `device` is empty for none.
    pub fn want(&mut self, option: &OptionText, device: &str, want: Want) -> &mut Wish {
        let at = self.list.len();
        self.list.push(Wish {
            origin: option.origin.clone(),
            unit: self.instance.name.clone(),
            plugin: self.instance.plugin.clone(),
            option: option.name.clone(),
            device: (!device.is_empty()).then(|| device.to_owned()),
            asked: option.value.clone(),
            want,
            risk: None,
        });
        &mut self.list[at]
    }

    /// This value on this knob, at once, without looking for tuned's `>` and `<`.
    pub fn set(&mut self, option: &OptionText, device: &str, knob: Knob, to: impl Into<Value>) -> &mut Wish {
        self.want(option, device, Want::Set { knob, to: to.into(), when: When::Now })
    }

    /// The option's value on this knob; `>V` only when V is larger than what was there before the profile in force,
    /// `<V` only when it is smaller.
    /// Where the knob's value is not known, V is taken as it is, as tuned does. Text that is no number is refused.
    pub fn set_modified(
        &mut self,
        scene: &Scene,
        option: &OptionText,
        device: &str,
        knob: Knob,
    ) -> &mut Wish {
        let asked = option.value.trim();
        let Some((upwards, number)) = asked
            .strip_prefix('>')
            .map(|rest| (true, rest))
            .or_else(|| Some((false, asked.strip_prefix('<')?)))
        else {
            return self.set(option, device, knob, asked);
        };
        let Ok(wanted) = number.trim().parse::<i64>() else {
            return self.cannot(
                option,
                device,
                Fault::Profile,
                format!("`{asked}` compares with no whole number"),
            );
        };
        let current = scene.before(&knob).ok().and_then(|value| value.text()?.trim().parse::<i64>().ok());
        match current {
            Some(current) if upwards && current >= wanted => {
                self.want(option, device, Want::Leave(format!("{knob} is {current}, not below {wanted}")))
            }
            Some(current) if !upwards && current <= wanted => {
                self.want(option, device, Want::Leave(format!("{knob} is {current}, not above {wanted}")))
            }
            _ => self.set(option, device, knob, wanted.to_string()),
        }
    }

    /// The CPUs that the option lists; where that is no list, or an empty one, the option cannot act.
    pub fn cpus(&mut self, option: &OptionText) -> Option<CpuSet> {
        let why = match parse_cpus(&option.value) {
            Ok(cpus) if !cpus.is_empty() => return Some(cpus),
            Ok(_) => "no CPU is left in the list".to_owned(),
            Err(why) => why,
        };
        self.cannot(option, "", Fault::Profile, why);
        None
    }

    /// It cannot act, and why.
    pub fn cannot(
        &mut self,
        option: &OptionText,
        device: &str,
        fault: Fault,
        why: impl Into<String>,
    ) -> &mut Wish {
        self.want(option, device, Want::Cannot { why: why.into(), fault })
    }

    /// Something to run, and what undoes it.
    pub fn run(
        &mut self,
        option: &OptionText,
        act: Act,
        undo: Option<Act>,
        verify: Option<Act>,
    ) -> &mut Wish {
        self.want(option, "", Want::Run { act, undo, verify })
    }

    /// Something that a living process must hold.
    pub fn hold(&mut self, option: &OptionText, device: &str, hold: Hold) -> &mut Wish {
        self.want(option, device, Want::Hold(hold))
    }
}
