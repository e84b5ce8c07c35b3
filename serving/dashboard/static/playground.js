"use strict";
// Asks the service as any client would, and shows the answer as it comes and how it came about.

const form = document.getElementById("ask");
const answer = document.getElementById("answer");
const state = document.getElementById("state");
const decision = document.getElementById("decision");
const stop = document.getElementById("stop");
const words = Object.fromEntries([...document.querySelectorAll("data.word")].map((each) => [each.value, each.textContent]));
let asking = null;

const NUMBERS = ["max_cost_usd", "min_quality", "deadline_ms"];

function body() {
  const fields = form.elements;
  const messages = [{ role: "user", content: fields.prompt.value }];
  if (fields.system.value.trim()) messages.unshift({ role: "system", content: fields.system.value });
  const control = { explain: true };
  for (const name of NUMBERS) if (fields[name].value) control[name] = Number(fields[name].value);
  const asked = { model: fields.model.value, messages, stream: true, cascade: control };
  if (fields.max_tokens.value) asked.max_tokens = Number(fields.max_tokens.value);
  if (fields.temperature.value) asked.temperature = Number(fields.temperature.value);
  return asked;
}

function headers() {
  const tenant = form.elements.tenant.value.trim();
  return { "content-type": "application/json", ...(tenant ? { "x-cascade-tenant": tenant } : {}) };
}

async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      if (block.startsWith("data: ") && block !== "data: [DONE]") yield JSON.parse(block.slice(6));
    }
  }
}

const dash = form.dataset.dash;
const dollars = (text) => (text === null || text === undefined ? dash : `$${Number(Number(text).toPrecision(3)).toString().includes("e") ? Number(text).toFixed(12).replace(/0+$/, "") : Number(Number(text).toPrecision(3))}`);
const seconds = (number) => (number === null || number === undefined ? dash : number < 1 ? `${Math.round(number * 1000)} ms` : `${number.toFixed(2)} s`);
const score = (number) => (number === null || number === undefined ? dash : number.toFixed(3));

function row(attempt) {
  const made = document.getElementById("attempt").content.cloneNode(true);
  const [name, outcome, judged, quoted, cost, took, why] = made.querySelectorAll("th, td");
  const [strong, kind] = name.children;
  strong.textContent = attempt.kind === "judge" ? attempt.judge : attempt.tier;
  kind.textContent = words[`kind.${attempt.kind}`] || attempt.kind;
  why.textContent = attempt.error ? `${attempt.error.type}: ${attempt.error.message}` : attempt.reason;
  outcome.textContent = words[`outcome.${attempt.outcome}`] || attempt.outcome || dash;
  const held = attempt.threshold === null ? "" : ` / ${score(attempt.threshold)}`;
  judged.textContent = `${score(attempt.score)}${held}`;
  quoted.textContent = dollars(attempt.quoted_usd);
  cost.textContent = dollars(attempt.cost_usd);
  took.textContent = seconds(attempt.seconds);
  return made;
}

function explain(told) {
  const say = {
    who: told.tier ? `${told.tier} (${told.model})` : dash,
    policy: told.policy, arm: told.experiment ? `${told.experiment} / ${told.arm}` : dash,
    cost: dollars(told.cost_usd), baseline: dollars(told.baseline_usd),
    seconds: seconds(told.seconds), reason: told.reason,
  };
  for (const [name, text] of Object.entries(say)) decision.querySelector(`[data-say="${name}"]`).textContent = text;
  decision.querySelector('[data-say="reason"]').lang = "en";
  decision.querySelector('[data-say="attempts"]').replaceChildren(...told.attempts.map(row));
  document.getElementById("opened").href = form.dataset.requests + told.request_id;
  decision.hidden = false;
  tell([...decision.querySelectorAll("[lang=en]")]);
}

// The API speaks English; the page knows most of its sentences in the visitor's language.
async function tell(parts) {
  if (!form.dataset.told) return;
  const said = new URLSearchParams(parts.map((part) => ["said", part.textContent]));
  try {
    const answer = await fetch(`${form.dataset.told}?${said}`, { redirect: "error" });
    if (!answer.ok) return;
    (await answer.json()).forEach((text, i) => {
      if (text !== parts[i].textContent) parts[i].lang = document.documentElement.lang;
      parts[i].textContent = text;
    });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // the service is away: English stays
  }
}

function fail(fault) {
  state.textContent = `${form.dataset.failed} ${fault.message}`;
  state.className = "alert bad";
}

function take(event) {
  if (event.error) fail(event.error);
  for (const choice of event.choices || []) {
    const delta = choice.delta || {};
    answer.textContent += delta.content || "";
    if (delta.tool_calls) answer.textContent += JSON.stringify(delta.tool_calls, null, 1);
  }
  if (event.cascade) explain(event.cascade);
}

async function ask() {
  const response = await fetch("/v1/chat/completions", {
    method: "POST", headers: headers(), body: JSON.stringify(body()), signal: asking.signal,
  });
  if (!response.ok || !(response.headers.get("content-type") || "").startsWith("text/event-stream")) {
    take(await response.json());
    return;
  }
  for await (const event of events(response.body)) take(event);
}

async function send(event) {
  event.preventDefault();
  asking = new AbortController();
  answer.textContent = "";
  answer.hidden = false;
  decision.hidden = true;
  state.className = "hint";
  state.textContent = form.dataset.working;
  stop.hidden = false;
  document.getElementById("send").disabled = true;
  try {
    await ask();
    if (state.className === "hint") state.textContent = form.dataset.done;
  } catch (error) {
    if (error.name === "AbortError") state.textContent = form.dataset.stopped;
    else fail(error);
  } finally {
    stop.hidden = true;
    document.getElementById("send").disabled = false;
  }
}

form.addEventListener("submit", send);
stop.addEventListener("click", () => asking.abort());
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
