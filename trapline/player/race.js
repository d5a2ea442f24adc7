"use strict";
// Plays a race: one row of the table is the present step, and the views say what each CPU may fetch now.
(() => {
  const race = JSON.parse(document.getElementById("race").textContent);
  const $ = (id) => document.getElementById(id);
  const rows = [...document.querySelectorAll("#lanes tbody tr")];
  const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  const html = (value) => String(value).replace(/[&<>"]/g, (c) => escapes[c]);
  const wanted = Number(new URLSearchParams(location.hash.slice(1)).get("step"));
  let step = Math.min(Math.max(Number.isInteger(wanted) ? wanted : 0, 0), rows.length - 1);

  function show() {
    const now = race.rows[step];
    rows.forEach((row, index) => { row.className = index === step ? "here" : index > step ? "later" : ""; });
    rows[step].scrollIntoView({ block: "nearest" });
    $("slider").value = step;
    $("sentence").textContent = `${step}. ${now.lane < 0 ? "" : race.lanes[now.lane] + ": "}${now.text}`;
    $("fault").hidden = !now.failure;
    $("fault").textContent = now.failure;
    const cpus = now.cpus.map((cpu) =>
      `<tr><th>${html(cpu.name)}</th><td>${html(cpu.where)}</td><td>may fetch ${cpu.sees.map((one) => `<code>${html(one)}</code>`).join(" or ") || "nothing"}</td></tr>`);
    $("views").innerHTML = `<tr><th>memory</th><td></td><td><code>${html(now.memory)}</code></td></tr>${cpus.join("")}`;
    history.replaceState(null, "", `#step=${step}`);
  }

  function go(to) {
    step = Math.min(Math.max(to, 0), rows.length - 1);
    show();
  }

  // The first step of another lane, in a direction; without one the last step there.
  function lane(direction) {
    let to = step;
    while (race.rows[to + direction] && race.rows[to + direction].lane === race.rows[step].lane) to += direction;
    return to + direction;
  }

  $("previous").addEventListener("click", () => go(step - 1));
  $("next").addEventListener("click", () => go(step + 1));
  $("slider").addEventListener("input", () => go(Number($("slider").value)));
  document.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: step - 1, ArrowRight: step + 1, PageUp: lane(-1), PageDown: lane(1), Home: 0, End: rows.length - 1 }[event.key];
    if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    go(to);
  });
  show();
})();
