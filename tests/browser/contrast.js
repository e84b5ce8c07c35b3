() => {
  const rgb = (text) => text.match(/[\d.]+/g).map(Number);
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) =>
    0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const colour = rgb(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const written = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  const found = new Set();
  for (const e of document.querySelectorAll("main *, header *")) {
    if (e.closest("svg, script, template, .skip, dialog") || !e.checkVisibility()) continue;
    if (!written(e)) continue;
    const pair = [light(rgb(getComputedStyle(e).color)), light(behind(e))];
    const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (ratio < 4.5) found.add(`${ratio.toFixed(2)} ${e.textContent.trim().slice(0, 40)}`);
  }
  return [...found];
}
