"use strict";
// Draws the page's figures with plotly, in the page's colours and the viewer's zone.

const DAY = 86400;
const PREFIX = { usd: "$" };
const FORMAT = { share: ".0%", ms: ",.4~r", count: ",.4~r" };
const HOVER = { share: ".1%", ms: ",.0f", count: ",.0f", usd: ",.4~g" };
const SUFFIX = { ms: " ms" };

const colour = (role) => getComputedStyle(document.documentElement).getPropertyValue(`--${role}`).trim();
const ROLES = { accent: "accent", muted: "soft", faint: "line", good: "good", warn: "warn", bad: "bad" };

function wallClock(seconds, step) {
  // Plotly knows no zones: it is told the viewer's wall clock. Days are days in UTC.
  const moment = new Date(seconds * 1000);
  const shift = step >= DAY ? 0 : moment.getTimezoneOffset() * 60000;
  return new Date(moment - shift).toISOString().slice(0, 19);
}

function timeAxis(figure) {
  const daily = figure.step >= DAY;
  const few = daily && figure.places.length < 10 ? { dtick: DAY * 1000 } : { nticks: 7 };
  return { type: "date", tickformat: daily ? "%m-%d" : "%H:%M\n%m-%d", tickangle: 0, ...few };
}

function trace(line, figure, places) {
  const ink = colour(ROLES[line.role] || line.role);
  const suffix = SUFFIX[figure.unit] || "";
  const told = `%{y:${HOVER[figure.unit]}}${suffix}`;
  const common = {
    name: line.name, x: places, y: line.values, connectgaps: false,
    hovertemplate: `${line.name} ${PREFIX[figure.unit] || ""}${told}${line.notes.length ? " %{text}" : ""}<extra></extra>`,
    text: line.notes,
  };
  if (line.mark === "bar") {
    return { ...common, type: "bar", marker: { color: ink }, opacity: line.role === "faint" ? 0.6 : 1 };
  }
  const dash = line.mark === "dashes" ? "dot" : "solid";
  const mode = line.mark === "points" || line.values.length < 3 ? "lines+markers" : "lines";
  return { ...common, type: "scatter", mode, line: { color: ink, width: 2, dash }, marker: { color: ink, size: 7 } };
}

function diagonal() {
  return {
    type: "scatter", mode: "lines", x: [0, 1], y: [0, 1], hoverinfo: "skip", showlegend: false,
    line: { color: colour("soft"), width: 1, dash: "dash" },
  };
}

function layout(figure) {
  const axis = { gridcolor: colour("grid"), linecolor: colour("line"), zerolinecolor: colour("line"), fixedrange: true };
  const timed = figure.axis === "time";
  return {
    margin: { l: 56, r: 8, t: 26, b: 36 }, height: 224, autosize: true, hovermode: timed ? "x unified" : "closest",
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 11.5, color: colour("soft") },
    barmode: figure.stacked ? "stack" : "overlay", bargap: 0.15,
    legend: { orientation: "h", traceorder: "normal", x: 1, xanchor: "right", y: 1.02, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)" },
    showlegend: figure.lines.length > 1,
    hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line"), font: { color: colour("ink") } },
    xaxis: { ...axis, showgrid: false, ...(timed ? timeAxis(figure) : { range: [0, 1], tickformat: ".1f" }) },
    yaxis: {
      ...axis, tickformat: FORMAT[figure.unit], tickprefix: PREFIX[figure.unit] || "", ticksuffix: SUFFIX[figure.unit] || "",
      nticks: 5, rangemode: "tozero", ...(figure.unit === "count" && most(figure) < 5 ? { dtick: 1 } : {}), exponentformat: "none", separatethousands: true, ...(figure.unit === "share" && figure.diagonal ? { range: [0, 1.02] } : {}),
    },
  };
}

function most(figure) {
  const total = (at) => figure.lines.reduce((sum, line) => sum + (line.values[at] || 0), 0);
  return Math.max(0, ...figure.places.map((_, at) => total(at)));
}

function draw(plot) {
  const data = document.querySelector(`script[data-for="${plot.dataset.chart}"]`);
  const figure = JSON.parse(data.textContent);
  const places = figure.axis === "time" ? figure.places.map((each) => wallClock(each, figure.step)) : figure.places;
  const traces = figure.lines.map((line) => trace(line, figure, places));
  if (figure.diagonal) traces.push(diagonal());
  window.Plotly.react(plot, traces, layout(figure), { displayModeBar: false, responsive: true, locale: "en" });
}

function drawAll() {
  for (const plot of document.querySelectorAll("[data-chart]")) draw(plot);
}

drawAll();
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
