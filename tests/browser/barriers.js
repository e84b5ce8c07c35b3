() => {
  const found = [];
  const all = (selector) =>
    [...document.querySelectorAll(selector)].filter((e) => !e.closest("#js-plotly-tester"));
  const shown = (e) => e.outerHTML.slice(0, 200);
  const named = (e) => (e.getAttribute("aria-label") || e.textContent || e.title || "").trim();
  for (const e of all("input:not([type=hidden]), select, textarea")) {
    if (!e.labels.length && !e.getAttribute("aria-label")) found.push(`no label: ${shown(e)}`);
  }
  for (const e of all("button, a[href], summary")) {
    if (!named(e)) found.push(`no name: ${shown(e)}`);
  }
  for (const e of all("svg[role=img], [role=region], figure, nav, dialog")) {
    if (!e.getAttribute("aria-label") && !e.getAttribute("aria-labelledby")) {
      found.push(`no label: ${shown(e)}`);
    }
  }
  for (const e of all("svg:not([role]):not([aria-hidden])")) {
    if (!e.closest("[aria-hidden]")) found.push(`read out: ${shown(e)}`);
  }
  for (const name of ["aria-labelledby", "aria-describedby"]) {
    for (const e of all(`[${name}]`)) {
      for (const id of e.getAttribute(name).split(" ")) {
        if (!document.getElementById(id)) found.push(`points nowhere: ${id}`);
      }
    }
  }
  for (const th of all("th")) if (!th.scope) found.push(`no scope: ${shown(th)}`);
  const levels = all("h1, h2, h3").map((e) => Number(e.tagName[1]));
  if (levels.filter((level) => level === 1).length !== 1) found.push(`not one h1: ${levels}`);
  levels.forEach((level, i) => {
    if (i && level > levels[i - 1] + 1) found.push(`a level is left out: ${levels}`);
  });
  const ids = all("[id]").map((e) => e.id);
  const twice = ids.filter((id, i) => ids.indexOf(id) !== i);
  if (twice.length) found.push(`there twice: ${twice}`);
  if (!document.documentElement.lang || !document.title) found.push("no language or title");
  return found;
}
