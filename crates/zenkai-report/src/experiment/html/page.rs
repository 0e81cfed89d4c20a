//! Elements of a page. Text and attribute values are escaped here and nowhere else; a section cannot write raw markup.

use zenkai_host::is_hidden;

/// A page under way.
#[derive(Debug, Default)]
pub(super) struct Page {
    out: String,
}

/// An attribute of an element.
pub(super) type Attribute<'a> = (&'static str, &'a str);

impl Page {
    /// The page as text.
    pub(super) fn finish(self) -> String {
        self.out
    }

    /// Bytes so far.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// Text of our own that is no data: the document type, the style sheet, the script.
    pub(super) fn fixed(&mut self, text: &'static str) {
        self.out.push_str(text);
    }

    /// An element with what `body` writes into it.
    pub(super) fn el(&mut self, tag: &'static str, attributes: &[Attribute], body: impl FnOnce(&mut Self)) {
        self.open(tag, attributes);
        self.out.push('>');
        body(self);
        self.out.push_str("</");
        self.out.push_str(tag);
        self.out.push('>');
        if matches!(
            tag,
            "section" | "table" | "tr" | "div" | "svg" | "p" | "h2" | "h3" | "ul" | "li" | "figure"
        ) {
            self.out.push('\n');
        }
    }

    /// An element with text.
    pub(super) fn leaf(&mut self, tag: &'static str, attributes: &[Attribute], text: &str) {
        self.el(tag, attributes, |page| page.text(text));
    }

    /// A shape of SVG, or an element of HTML that has no end.
    pub(super) fn void(&mut self, tag: &'static str, attributes: &[Attribute]) {
        self.open(tag, attributes);
        self.out.push_str(if matches!(tag, "meta" | "br") { ">" } else { "/>" });
    }

    /// Text.
    pub(super) fn text(&mut self, text: &str) {
        self.escape(text);
    }

    fn open(&mut self, tag: &'static str, attributes: &[Attribute]) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            self.escape(value);
            self.out.push('"');
        }
    }

    fn escape(&mut self, text: &str) {
        for letter in text.chars() {
            match letter {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '"' => self.out.push_str("&quot;"),
                '\'' => self.out.push_str("&#39;"),
                '\n' | '\t' => self.out.push(' '),
                // What turns the direction of text or rings a bell is spelled out, as on the terminal.
                _ if is_hidden(letter) => self.out.extend(letter.escape_default()),
                _ => self.out.push(letter),
            }
        }
    }
}

/// A coordinate with at most one decimal.
pub(super) fn n(value: f64) -> String {
    let text = format!("{:.1}", value + 0.0);
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// The class that gives an arm its colour.
pub(super) fn colour(arm: usize) -> String {
    format!("a{}", arm % 8)
}

/// A mark of an arm: its shape tells it from others without colour. `class` is added to that of the colour; `tip` is
/// shown by the browser on hovering and read by screen readers.
pub(super) fn mark(page: &mut Page, arm: usize, (x, y): (f64, f64), class: &str, tip: &str) {
    let class = format!("{} {class}", colour(arm));
    let r = 4.2;
    let path = |page: &mut Page, d: String| {
        page.el("path", &[("class", &class), ("d", &d)], |page| tooltip(page, tip));
    };
    // With the ninth arm the colours begin again, but with other shapes.
    match (arm + arm / 8) % 4 {
        0 => page.el("circle", &[("class", &class), ("cx", &n(x)), ("cy", &n(y)), ("r", "3.9")], |page| {
            tooltip(page, tip);
        }),
        1 => path(page, format!("M{} {}h7v7h-7z", n(x - 3.5), n(y - 3.5))),
        2 => path(page, format!("M{} {}l{} {}h{}z", n(x), n(y - r), n(r), n(2.0 * r), n(-2.0 * r))),
        _ => path(page, format!("M{} {}l{r} {r}l-{r} {r}l-{r} -{r}z", n(x), n(y - r))),
    }
}

fn tooltip(page: &mut Page, tip: &str) {
    if !tip.is_empty() {
        page.leaf("title", &[], tip);
    }
}

/// A cross where a trial failed.
pub(super) fn cross(page: &mut Page, arm: usize, (x, y): (f64, f64), tip: &str) {
    let class = format!("{} failed", colour(arm));
    let d = format!("M{} {}l8 8m0 -8l-8 8", n(x - 4.0), n(y - 4.0));
    page.el("path", &[("class", &class), ("d", &d)], |page| page.leaf("title", &[], tip));
}

/// A legend of arms that are shown by their marks: mark and name.
pub(super) fn legend(page: &mut Page, names: &[String]) {
    keys(page, names, |page, arm| mark(page, arm, (15.0, 7.0), "dot", ""));
}

/// A legend of lines: a piece of the line, and its name.
pub(super) fn legend_of_lines(page: &mut Page, names: &[String]) {
    keys(page, names, |page, arm| {
        page.void("path", &[("class", &format!("{} med", colour(arm))), ("d", "M2 7h26")]);
    });
}

fn keys(page: &mut Page, names: &[String], key: impl Fn(&mut Page, usize)) {
    page.el("div", &[("class", "legend")], |page| {
        for (arm, name) in names.iter().enumerate() {
            page.el("span", &[], |page| {
                page.el("svg", &[("viewBox", "0 0 30 14"), ("aria-hidden", "true")], |page| key(page, arm));
                page.text(name);
            });
        }
    });
}
