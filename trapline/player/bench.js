"use strict";
// Shows one step of the page at a time; without it, or in print, all of them are shown.
(() => {
  const $ = (id) => document.getElementById(id);
  const steps = [...document.querySelectorAll(".step")];
  const rows = [...document.querySelectorAll("[id^='code-'] td:first-child")].map((cell) => cell.parentElement);
  let step = 0;

  function show() {
    steps.forEach((one, number) => { one.hidden = number !== step; });
    const row = Number(steps[step].dataset.row);
    rows.forEach((one, number) => { one.className = number === row ? "here" : ""; });
    $("slider").value = step;
    $("slider").setAttribute("aria-valuetext", steps[step].getAttribute("aria-label"));
    $("sentence").textContent = steps[step].dataset.sentence;
    $("link").textContent = $("link").hash = `#step=${step}`;
    document.body.dataset.step = String(step);
  }

  function go(to) {
    step = Math.min(Math.max(to, 0), steps.length - 1);
    if (location.protocol !== "about:") history.replaceState(null, "", `#step=${step}`);
    show();
  }

  const fromHash = () => go(Number.parseInt(new URLSearchParams(location.hash.slice(1)).get("step") ?? "0", 10) || 0);
  $("previous").onclick = () => go(step - 1);
  $("next").onclick = () => go(step + 1);
  $("slider").oninput = () => go(Number($("slider").value));
  rows.forEach((row, number) => { row.onclick = () => { const at = steps.findIndex((one) => Number(one.dataset.row) === number); if (at >= 0) go(at); }; });
  document.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: step - 1, PageUp: step - 1, ArrowRight: step + 1, PageDown: step + 1, Home: 0, End: steps.length - 1 }[event.key];
    if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    go(to);
  });
  window.addEventListener("hashchange", fromHash);
  document.body.classList.add("playing");
  fromHash();
})();
