// The page is complete without this script. It adds: a reading under the pointer, zoom in time, and a search.
"use strict";
(() => {
  const root = document.documentElement;
  root.dataset.script = "on";

  const SVG = "http://www.w3.org/2000/svg";
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);

  function showTip(event, text) {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const x = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
    const above = event.clientY - box.height - 12;
    tip.style.left = `${Math.max(8, x)}px`;
    tip.style.top = `${above > 8 ? above : event.clientY + 18}px`;
  }

  function hideTip() {
    tip.hidden = true;
  }

  // Marks: their title moves to a tip that shows at once. Screen readers keep the label.
  for (const title of document.querySelectorAll(".draw svg > [class] > title, .draw svg g > [class] > title")) {
    const mark = title.parentNode;
    const text = title.textContent;
    mark.setAttribute("aria-label", text);
    title.remove();
    mark.addEventListener("pointermove", (event) => showTip(event, text));
    mark.addEventListener("pointerleave", hideTip);
  }

  // The points of a line that is written as "M x y l dx dy …", in the plot's own coordinates.
  function points(path) {
    const found = [];
    for (const part of path.getAttribute("d").split("M").slice(1)) {
      const numbers = part.match(/-?\d+/g).map(Number);
      let [x, y] = numbers;
      found.push([x, y]);
      for (let index = 2; index + 1 < numbers.length; index += 2) {
        x += numbers[index];
        y += numbers[index + 1];
        found.push([x, y]);
      }
    }
    return found;
  }

  function nearest(list, x) {
    let best = null;
    for (const point of list) {
      if (!best || Math.abs(point[0] - x) < Math.abs(best[0] - x)) best = point;
    }
    return best;
  }

  // Charts over time.
  function chart(plot) {
    const whole = plot.viewBox.baseVal;
    const [width, height] = [whole.width, whole.height];
    const seconds = Number(plot.dataset.seconds);
    const low = Number(plot.dataset.low);
    const high = Number(plot.dataset.high);
    const axis = plot.parentNode.querySelector(".time");
    const axisBefore = [...axis.querySelectorAll("text")].map((text) => text.cloneNode(true));
    const left = Number(plot.getAttribute("x"));
    const plotWidth = Number(plot.getAttribute("width"));
    let lines = null;
    let from = null;

    const rule = document.createElementNS(SVG, "line");
    rule.setAttribute("class", "rule");
    rule.setAttribute("y1", 0);
    rule.setAttribute("y2", height);
    const pick = document.createElementNS(SVG, "rect");
    pick.setAttribute("class", "pick");
    pick.setAttribute("height", height);

    function place(event) {
      const box = plot.querySelector(".catch").getBoundingClientRect();
      const view = plot.viewBox.baseVal;
      const share = (event.clientX - box.left) / box.width;
      return view.x + Math.min(1, Math.max(0, share)) * view.width;
    }

    function zoom(start, end) {
      plot.setAttribute("viewBox", `${start} 0 ${end - start} ${height}`);
      const background = plot.querySelector(".catch");
      background.setAttribute("x", start);
      background.setAttribute("width", end - start);
      for (const text of axis.querySelectorAll("text")) text.remove();
      if (start === 0 && end === width) {
        axis.append(...axisBefore.map((text) => text.cloneNode(true)));
        return;
      }
      const [first, last] = [start, end].map((x) => (x / width) * seconds);
      const rough = (last - first) / 5;
      const power = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((unit) => unit * power).find((size) => size >= rough * 0.999);
      for (let tick = Math.ceil(first / step) * step; tick <= last; tick += step) {
        const text = document.createElementNS(SVG, "text");
        text.setAttribute("class", "mid");
        text.setAttribute("x", left + ((tick - first) / (last - first)) * plotWidth);
        text.setAttribute("y", axisBefore[0].getAttribute("y"));
        text.textContent = `${Number(tick.toPrecision(6))} s`;
        axis.append(text);
      }
    }

    plot.addEventListener("pointermove", (event) => {
      lines = lines || [...plot.querySelectorAll(".med")].map((path) => [path.dataset.arm, points(path)]);
      const x = place(event);
      rule.setAttribute("x1", x);
      rule.setAttribute("x2", x);
      plot.append(rule);
      if (from !== null) {
        pick.setAttribute("x", Math.min(from, x));
        pick.setAttribute("width", Math.abs(x - from));
        plot.append(pick);
      }
      const rows = [`at ${Number(((x / width) * seconds).toPrecision(3))} s`];
      for (const [arm, list] of lines) {
        const point = nearest(list, x);
        if (!point) continue;
        const value = high - (point[1] / height) * (high - low);
        // A line is drawn to a thousandth of the axis: digits beyond that are none.
        const digits = Math.min(12, Math.max(0, 3 - Math.floor(Math.log10(high - low))));
        rows.push(`${arm}: ${Number(value.toFixed(digits))} ${plot.dataset.unit}`.trim());
      }
      showTip(event, rows.join("\n"));
    });
    plot.addEventListener("pointerleave", () => {
      rule.remove();
      hideTip();
    });
    plot.addEventListener("pointerdown", (event) => {
      from = place(event);
      plot.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    plot.addEventListener("pointerup", (event) => {
      const to = place(event);
      pick.remove();
      if (from !== null && Math.abs(to - from) > plot.viewBox.baseVal.width / 50) {
        zoom(Math.min(from, to), Math.max(from, to));
      }
      from = null;
    });
    plot.addEventListener("dblclick", () => zoom(0, width));
  }
  for (const plot of document.querySelectorAll(".plot")) chart(plot);

  // A search over the channels.
  const channels = document.getElementById("channels");
  const charts = channels ? [...channels.querySelectorAll(".chart")] : [];
  if (charts.length > 4) {
    const tools = document.createElement("div");
    tools.className = "tools";
    const label = document.createElement("label");
    label.textContent = "Find a channel ";
    const input = document.createElement("input");
    input.type = "search";
    label.append(input);
    const hint = document.createElement("span");
    hint.className = "quiet";
    hint.textContent = "Drag in a chart to zoom, double-click to see all of it.";
    tools.append(label, hint);
    channels.querySelector("h2").after(tools);
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      for (const figure of charts) {
        const text = `${figure.dataset.name} ${figure.querySelector("b").textContent}`.toLowerCase();
        figure.hidden = wanted !== "" && !text.includes(wanted);
      }
      for (const group of channels.querySelectorAll("details")) {
        const some = group.querySelector(".chart:not([hidden])");
        group.hidden = !some;
        group.open = wanted !== "" && Boolean(some);
      }
    });
  }
})();
