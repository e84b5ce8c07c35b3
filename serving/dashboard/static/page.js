"use strict";
// What every view needs: times in the viewer's zone, dialogs that ask before a change, and parts
// that look again. The page says everything without it except in which zone it is read.

const FORMS = {
  minute: { dateStyle: "medium", timeStyle: "short" },
  day: { dateStyle: "medium", timeZone: "UTC" },
  second: { dateStyle: "short", timeStyle: "medium" },
};

function tellTimes(root) {
  const language = document.documentElement.lang;
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    time.textContent = new Intl.DateTimeFormat(language, FORMS[time.dataset.form]).format(moment);
    time.title = time.dateTime;
  }
}

function openDialog(button) {
  const dialog = document.getElementById(button.dataset.dialog);
  const form = dialog.querySelector("form");
  form.reset();
  for (const [name, value] of Object.entries(button.dataset)) {
    const field = name.startsWith("set") && form.elements[name.slice(3).toLowerCase()];
    if (field) field.value = value;
  }
  dialog.querySelector("h2").textContent = button.dataset.title;
  for (const part of dialog.querySelectorAll("[data-timed-only]")) {
    part.hidden = button.dataset.timed !== "yes";
  }
  dialog.showModal();
}

function follow(event) {
  const opener = event.target.closest("[data-dialog]");
  if (opener) openDialog(opener);
  const closer = event.target.closest("[data-close]");
  if (closer) closer.closest("dialog").close();
}

function once(event) {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.confirm && !window.confirm(form.dataset.confirm)) {
    event.preventDefault();
    return;
  }
  for (const button of form.querySelectorAll("button")) button.disabled = true;
}

async function renew(part, address) {
  try {
    const answer = await fetch(address, { headers: { accept: "text/html" } });
    if (answer.redirected) location.reload(); // to sign in again
    if (!answer.ok && !part.dataset.later) return; // what is shown stays
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById(answer.ok ? part.id : "fault");
    if (!fresh) return;
    part.replaceChildren(...fresh.childNodes);
    tellTimes(part);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // the service is away: what is shown stays
  }
}

function lookAgain(part) {
  if (document.hidden || document.querySelector("dialog[open]")) return;
  if (!part.contains(document.activeElement)) renew(part, location.href);
}

document.addEventListener("click", follow);
document.addEventListener("submit", once);
tellTimes(document);
for (const part of document.querySelectorAll("[data-later]")) renew(part, part.dataset.later);
for (const part of document.querySelectorAll("[data-refresh]")) {
  setInterval(() => lookAgain(part), Number(part.dataset.refresh) * 1000);
}
