//! Pages of made-up experiments: complete, closed to what they show, small.

use serde_json::json;
use zenkai_measure::experiment::made_up::Recipe;
use zenkai_measure::experiment::{Status, Trial};

use super::super::tests::MadeUp;
use super::*;

#[test]
fn the_policy_knows_style_and_script_by_their_hash() {
    assert_eq!(
        (STYLE_HASH, SCRIPT_HASH),
        (base64(&sha256(STYLE)).as_str(), base64(&sha256(SCRIPT)).as_str())
    );
    let page = experiment_html(&MadeUp::new(&Recipe::default()).shown());
    assert!(page.contains(&format!("script-src &#39;sha256-{SCRIPT_HASH}&#39;")));
    for blocked in [" style=\"", " onload=", " onclick=", "javascript:", "url(", "@import", "src=\"", "<link"]
    {
        assert!(!page.contains(blocked), "{blocked}");
    }
    let away = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!away.contains("http://") && !away.contains("https://"), "nothing is loaded from elsewhere");
}

#[test]
fn hostile_names_stay_text() {
    let hostile = "</title></script><script>alert(1)</script><img src=x onerror=\"alert(2)\"> & \u{202e}'\"";
    let recipe = Recipe { fail_every: 7, ..Recipe::default() };
    let (mut plan, mut trials) = (recipe.plan(), recipe.trials(&recipe.plan()));
    for arm in &mut plan.arms {
        arm.name = hostile.into();
        arm.spec = hostile.into();
        for setting in &mut arm.settings {
            (setting.what, setting.from, setting.to) =
                (hostile.into(), Some(hostile.into()), Some(hostile.into()));
        }
    }
    plan.workload = vec![hostile.into()];
    (plan.metric.name, plan.metric.unit) = (hostile.into(), hostile.into());
    for trial in &mut trials {
        trial.reason = trial.reason.as_ref().map(|_| hostile.into());
        let value = trial.channels.values().next().copied().unwrap_or(1.0);
        trial.channels.insert(hostile.into(), value);
    }
    let mut made_up = MadeUp::of(&recipe, plan, trials);
    made_up.host = Some(json!({ hostile: { hostile: [hostile, hostile] } }));
    let page = experiment_html(&made_up.shown());
    assert_eq!(page.matches("<script").count(), 1);
    assert_eq!(page.matches("</script").count(), 1);
    assert!(!page.contains("<img") && !page.contains('\u{202e}'));
    assert!(page.contains("&lt;script&gt;alert(1)"), "it is shown, as text");
    balanced(&page);
}

#[test]
fn every_section_is_there_without_script() {
    let mut made_up = MadeUp::new(&Recipe { fail_every: 9, arms: 3, pairs: 12, ..Recipe::default() });
    made_up.host = Some(
        json!({ "cpu": { "model_name": "Some CPU" }, "msr": { "unavailable": "denied", "source": "/dev/cpu" } }),
    );
    let page = experiment_html(&made_up.shown());
    let places: Vec<Option<usize>> = [
        "class=\"sentence\"",
        "id=\"effect\"",
        "id=\"distribution\"",
        "id=\"sequence\"",
        "id=\"explanation\"",
        "id=\"secondary\"",
        "id=\"channels\"",
        "id=\"settings\"",
        "id=\"host\"",
        "id=\"same\"",
        "id=\"repeat\"",
    ]
    .iter()
    .map(|wanted| page.find(wanted))
    .collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
    for wanted in
        ["Some CPU", "made up: exit code 1", "zenkai analyze &#39;/tmp/made up&#39;", "class=\"a2 violin\""]
    {
        assert!(page.contains(wanted), "{wanted}");
    }
    balanced(&page);
}

#[test]
fn forty_trials_of_a_minute_with_a_hundred_channels_stay_small() {
    let recipe = Recipe { idle_channels: 100, noise: 0.2, effect: 0.0, ..Recipe::default() };
    let page = experiment_html(&MadeUp::new(&recipe).shown());
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
    assert_eq!(page.matches("<figure").count(), 103, "every channel is drawn that moves");
    assert!(page.contains("1 channel stayed at zero: not drawn."));
    let long = Recipe { idle_channels: 900, pairs: 40, noise: 0.2, effect: 0.0, ..Recipe::default() };
    let page = experiment_html(&MadeUp::new(&long).shown());
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
    assert!(page.contains("charts left out to keep the page small; what was recorded has all."));
}

#[test]
fn an_experiment_that_has_hardly_begun_is_a_page_too() {
    for pairs in [0, 2, 6] {
        let page = experiment_html(&MadeUp::new(&Recipe { pairs, noise: 0.1, ..Recipe::default() }).shown());
        balanced(&page);
        assert!(!page.contains("NaN") && !page.contains("inf\""), "{pairs}");
    }
    let recipe = Recipe { fail_every: 1, ..Recipe::default() };
    let page = experiment_html(&MadeUp::new(&recipe).shown());
    balanced(&page);
    assert!(!page.contains("NaN"));
    assert!(page.contains("cannot be compared in time (failed trials: 20 against 20)"), "{}", &page[..9_000]);
}

/// Trials of which the `edit` changes each.
fn edited(recipe: &Recipe, edit: impl Fn(usize, &mut Trial)) -> MadeUp {
    let (plan, mut trials) = (recipe.plan(), recipe.trials(&recipe.plan()));
    trials.iter_mut().enumerate().for_each(|(place, trial)| edit(place, trial));
    MadeUp::of(recipe, plan, trials)
}

#[test]
fn numbers_of_any_size_have_a_place() {
    let wild = [f64::MAX, f64::MIN_POSITIVE, 1e-300, 1.0, 1e300];
    let made_up = edited(&Recipe { pairs: 12, ..Recipe::default() }, |place, trial| {
        trial.value = Some(wild[place % wild.len()]);
        trial.channels.values_mut().for_each(|value| *value = -wild[place % wild.len()]);
        (trial.started_unix_s, trial.elapsed_s, trial.settled_s) = (f64::MAX, f64::MAX, -1.0);
    });
    let page = experiment_html(&made_up.shown());
    balanced(&page);
    assert!(!page.contains("NaN") && !page.contains("inf\"") && !page.contains(">inf"));
    let words = page.split(|letter: char| !letter.is_ascii_digit());
    let longest = words.max_by_key(|word| word.len()).unwrap();
    let at = page.find(longest).unwrap();
    assert!(longest.len() < 30, "a number that fills lines: {}", &page[at - 200..at + 30]);
}

#[test]
fn a_thousand_failed_trials_stay_in_their_place() {
    let made_up = edited(&Recipe { pairs: 500, fixed: true, ..Recipe::default() }, |place, trial| {
        if place > 3 {
            (trial.status, trial.value) = (Status::Failed, None);
        }
    });
    let page = experiment_html(&made_up.shown());
    balanced(&page);
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
    let picture = &page[page.find("id=\"distribution\"").unwrap()..page.find("id=\"sequence\"").unwrap()];
    assert_eq!(picture.matches("failed\" d=").count(), 50, "so many crosses have room beside two arms");
    assert!(page.contains("<summary>996 trials gave no number</summary>"));
}

#[test]
fn ten_arms_with_long_names_are_told_apart() {
    let recipe = Recipe { arms: 10, pairs: 6, ..Recipe::default() };
    let mut plan = recipe.plan();
    plan.arms.iter_mut().enumerate().for_each(|(arm, of)| of.name = format!("{arm}{}", "long".repeat(80)));
    plan.metric.name = "regex".repeat(50);
    let trials = recipe.trials(&plan);
    let page = experiment_html(&MadeUp::of(&recipe, plan, trials).shown());
    balanced(&page);
    let picture = &page[page.find("id=\"effect\"").unwrap()..page.find("id=\"sequence\"").unwrap()];
    let texts = picture.split("</text>").filter_map(|part| part.rsplit('>').next());
    let longest = texts.map(|text| text.chars().count()).max();
    assert!(longest < Some(120), "a label of {longest:?} letters runs out of the picture");
    let sentences = page.split("class=\"sentence\">").skip(1).filter_map(|part| part.split('<').next());
    assert!(sentences.map(str::len).max() < Some(260), "a heading of half a page");
    // The first and the ninth arm share a colour.
    let legend = &page[page.find("class=\"legend\"").unwrap()..];
    let marks = legend.split("<span>").skip(1).take(10).map(|mark| mark.split("</svg>").next().unwrap());
    let distinct: std::collections::BTreeSet<&str> = marks.collect();
    assert_eq!(distinct.len(), 10, "{distinct:?}");
}

#[test]
fn short_trials_and_commands_say_what_they_are() {
    let recipe = Recipe { pairs: 6, ..Recipe::default() };
    let mut plan = recipe.plan();
    for arm in &mut plan.arms {
        (arm.name, arm.spec) = (format!("cmd:{}", arm.name), format!("cmd:{}", arm.name));
        (arm.settings, arm.command) = (Vec::new(), vec!["gzip".into()]);
    }
    let trials = recipe.trials(&plan);
    let mut made_up = MadeUp::of(&recipe, plan, trials);
    made_up.series.iter_mut().for_each(|series| series.bins.truncate(1));
    let page = experiment_html(&made_up.shown());
    assert!(page.contains("The trials were too short for lines over time") && !page.contains("<figure"));
    let settings = &page[page.find("id=\"settings\"").unwrap()..page.find("id=\"host\"").unwrap()];
    assert!(
        settings.contains(">cmd:performance</h3>") && !settings.contains("changes nothing"),
        "{settings}"
    );
}

#[test]
fn shares_are_shown_in_per_cent_everywhere() {
    let mut made_up = MadeUp::new(&Recipe::default());
    let usr = made_up.series.iter_mut().filter(|series| &*series.channel == "cpu.usr");
    for series in usr {
        series.unit = "1".into();
        for bin in series.bins.iter_mut().flatten() {
            (bin.low, bin.mean, bin.high) = (bin.low / 100.0, bin.mean / 100.0, bin.high / 100.0);
        }
    }
    let page = experiment_html(&made_up.shown());
    let chart = &page[page.find("data-name=\"cpu.usr\"").unwrap()..];
    let high = chart.split("data-high=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(high.parse::<f64>().unwrap() > 90.0, "{high}");
    assert!(chart.split("data-unit=\"").nth(1).unwrap().starts_with('%'));
}

/// Every element that begins ends, in the right order.
pub(super) fn balanced(page: &str) {
    let mut open = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").unwrap();
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = rest.find('>').unwrap();
        let (tag, after) = (&rest[..end], &rest[end + 1..]);
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') && !matches!(name, "meta" | "br") {
            open.push(name);
        }
        // Their content is no markup.
        rest = match name {
            "script" | "style" if !tag.starts_with('/') => {
                &after[after.find(&format!("</{name}")).unwrap()..]
            }
            _ => after,
        };
    }
    assert!(open.is_empty(), "{open:?}");
}

/// SHA-256 (FIPS 180-4).
fn sha256(text: &str) -> Vec<u8> {
    let primes = |count: usize| {
        (2_u32..).filter(|n| (2..*n).all(|d| n % d != 0)).take(count).map(f64::from).collect::<Vec<f64>>()
    };
    // The first 32 bits of the fractional part of a root: exact enough in u128 arithmetic by bisection.
    let fraction = |prime: f64, power: u32| -> u32 {
        let (mut low, mut high) = (0_u128, 1_u128 << 40);
        let target = (prime.round().to_string().parse::<u128>().unwrap()) << (32 * power);
        while high - low > 1 {
            let middle = u128::midpoint(low, high);
            if middle.pow(power) <= target { low = middle } else { high = middle }
        }
        u32::try_from(low & 0xffff_ffff).unwrap()
    };
    let k: Vec<u32> = primes(64).into_iter().map(|prime| fraction(prime, 3)).collect();
    let mut h: Vec<u32> = primes(8).into_iter().map(|prime| fraction(prime, 2)).collect();
    let mut bytes = text.as_bytes().to_vec();
    let bits = u64::try_from(bytes.len()).unwrap() * 8;
    bytes.push(0x80);
    bytes.resize(bytes.len().next_multiple_of(64), 0);
    if bytes.len() - text.len() < 9 {
        bytes.resize(bytes.len() + 64, 0);
    }
    let end = bytes.len() - 8;
    bytes[end..].copy_from_slice(&bits.to_be_bytes());
    for chunk in bytes.chunks(64) {
        let mut w: Vec<u32> =
            chunk.chunks(4).map(|four| u32::from_be_bytes(four.try_into().unwrap())).collect();
        for i in 16..64 {
            let s0 = w[i - 15].rotate_right(7) ^ w[i - 15].rotate_right(18) ^ (w[i - 15] >> 3);
            let s1 = w[i - 2].rotate_right(17) ^ w[i - 2].rotate_right(19) ^ (w[i - 2] >> 10);
            w.push(w[i - 16].wrapping_add(s0).wrapping_add(w[i - 7]).wrapping_add(s1));
        }
        let mut v = h.clone();
        for i in 0..64 {
            let s1 = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
            let choice = (v[4] & v[5]) ^ (!v[4] & v[6]);
            let t1 = v[7].wrapping_add(s1).wrapping_add(choice).wrapping_add(k[i]).wrapping_add(w[i]);
            let s0 = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
            let majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
            v.rotate_right(1);
            v[4] = v[4].wrapping_add(t1);
            v[0] = t1.wrapping_add(s0.wrapping_add(majority));
        }
        h.iter_mut().zip(v).for_each(|(h, v)| *h = h.wrapping_add(v));
    }
    h.into_iter().flat_map(u32::to_be_bytes).collect()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let word =
            three.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = usize::try_from(word >> (18 - 6 * place) & 63).unwrap();
            text.push(if place > three.len() { '=' } else { char::from(LETTERS[letter]) });
        }
    }
    text
}
