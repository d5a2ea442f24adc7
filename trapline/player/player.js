"use strict";
// The player: it shows one step of a recording, and everything that is known at that moment.
// A recording has the registers before the first step and what each step changes; the rest is added up here.
(() => {
  const recordings = JSON.parse(document.getElementById("recordings").textContent);
  const $ = (id) => document.getElementById(id);
  const state = { recording: 0, firing: 0, step: 0 };
  const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  const html = (value) => String(value).replace(/[&<>"]/g, (c) => escapes[c]);
  const recording = () => recordings[state.recording];
  const firing = () => recording().firings[state.firing];
  for (const one of recordings)
    for (const each of one.firings) {
      each.steps = [...one.enabling, ...each.steps];
      each.steps.forEach((step, index) => { step.index = index; });
    }
  const steps = () => firing().steps;
  const hex = (value, digits) => "0x" + BigInt(value).toString(16).padStart(digits, "0");
  const isName = (name) => name !== "" && !name.includes("`");

  // -- what is known at a step

  function registersAt(index) {
    const values = { ...firing().registers };
    for (const step of steps().slice(0, index + 1))
      for (const [name, [, after]] of Object.entries(step.registers)) values[name] = after;
    return values;
  }

  function store(words, size, access) {
    // Put a write of any size into words of the machine's size.
    const address = BigInt(access.address), value = BigInt(access.value);
    for (let byte = 0n; byte < BigInt(access.size); byte++) {
      const target = address + byte, word = target - (target % size), shift = 8n * (target - word);
      const old = words.get(word) ?? 0n;
      words.set(word, (old & ~(0xffn << shift)) | (((value >> (8n * byte)) & 0xffn) << shift));
    }
  }

  function memoryAt(index) {
    const size = BigInt(recording().word), words = new Map();
    for (const word of firing().stack) words.set(BigInt(word.address), BigInt(word.value));
    steps().slice(0, index + 1).forEach((step) =>
      step.memory.forEach((access) => {
        if (!access.write && !words.has(BigInt(access.address) - (BigInt(access.address) % size)) && access.size === recording().word)
          words.set(BigInt(access.address), BigInt(access.value));
        if (access.write) store(words, size, access);
      }));
    return words;
  }

  // -- panes

  function reveal(pane, wanted) {
    // Scroll within the pane only: the page itself stays where the reader is.
    const inside = $(pane), row = inside.querySelector(wanted);
    if (!row) return;
    const from = row.getBoundingClientRect(), to = inside.getBoundingClientRect();
    if (from.top < to.top || from.bottom > to.bottom) inside.scrollTop += from.top - to.top - inside.clientHeight / 2;
  }

  function showCode(step) {
    const all = steps();
    const at = step.code ? step : all.slice(0, step.index + 1).reverse().find((one) => one.code) ?? all.find((one) => one.code);
    if (!at) { $("code").textContent = ""; return; }
    const symbol = (one) => one.where.split("+")[0];
    const rows = new Map();
    for (const one of all)
      if (one.code && one.text !== "exception" && symbol(one) === symbol(at)) rows.set(one.pc, one);
    const sorted = [...rows.values()].sort((a, b) => (BigInt(a.pc) < BigInt(b.pc) ? -1 : 1));
    let end = null;
    const lines = sorted.map((one) => {
      const gap = end !== null && BigInt(one.pc) !== end ? '<tr class="soft"><td>...</td></tr>' : "";
      end = BigInt(one.pc) + BigInt(one.code.length / 2);
      const offset = one.where.includes("+") ? "+" + one.where.split("+")[1] : "+0";
      const bytes = one.code.replace(/(..)(?=.)/g, "$1 ");
      const shown = one.patch ? `<del>${html(one.patch.before.replace(/(..)(?=.)/g, "$1 "))}</del> <ins>${html(bytes)}</ins>` : html(bytes);
      const here = one.pc === at.pc ? `here${step.code ? "" : " soft"}` : "";
      return `${gap}<tr class="${here}${one.out_of_line ? " copy" : ""}"><td>${html(offset)}</td><td>${html(one.text)}</td><td>${shown}</td></tr>`;
    });
    $("code").innerHTML = `<p class="soft"><code>${html(symbol(at))}</code>: what is executed of it</p><table>${lines.join("")}</table>`;
    reveal("code", ".here");
    $("source").innerHTML = at.source ? `${html(at.source.file)}:${at.source.line} <code>${html(at.source.text)}</code>` : "";
  }

  function showRegisters(step, values) {
    const digits = 2 * recording().word;
    // Those that change come first: they are in sight whatever number of registers an ISA has.
    const changed = (name) => name in step.registers;
    const names = [...recording().registers.filter(changed), ...recording().registers.filter((name) => !changed(name))];
    const rows = names.map((name) => {
      const change = step.registers[name];
      const title = change ? ` title="was ${hex(change[0], digits)}"` : "";
      return `<tr><th>${html(name)}</th> <td${title} class="${change ? "lit" : ""}">${hex(values[name] ?? 0, digits)}${change ? '<span aria-label=" changed"> *</span>' : ""}</td></tr>`;
    });
    $("registers").innerHTML = `<table>${rows.join("")}</table>`;
    $("registers").scrollTop = 0;
  }

  function showStack(step, values) {
    const one = recording(), size = BigInt(one.word), words = memoryAt(step.index), digits = 2 * one.word;
    const frame = firing().frame === null ? null : BigInt(firing().frame);
    const written = new Set(), now = new Set(), read = new Set();
    const first = BigInt(firing().registers[one.sp]);
    let built = false;
    steps().slice(0, step.index + 1).forEach((each) => each.memory.forEach((access) => {
      const word = BigInt(access.address) - (BigInt(access.address) % size);
      if (access.write && !access.name.includes("`")) written.add(word);
      if (access.write && isName(access.name)) built = true;
      if (each === step) (access.write ? now : read).add(word);
    }));
    const sp = BigInt(values[one.sp]);
    const wanted = new Set(written);
    for (let index = -2n; index < 5n; index++) { wanted.add(first - (first % size) + index * size); wanted.add(sp - (sp % size) + index * size); }
    if (frame !== null && built) one.frame_fields.forEach((_, index) => wanted.add(frame + BigInt(index) * size));
    const shown = [...wanted].filter((address) => words.has(address)).sort((a, b) => (a > b ? -1 : 1));
    let above = null;
    const rows = shown.map((address) => {
      const gap = above !== null && above - address !== size ? '<tr class="soft"><td>...</td></tr>' : "";
      above = address;
      const index = frame === null ? -1 : Number((address - frame) / size);
      const inside = built && frame !== null && address >= frame && index < one.frame_fields.length;
      const name = inside ? one.frame_fields[index] : "";
      const marks = [address <= sp && sp < address + size ? `&larr; ${html(one.sp)}` : "", address <= first && first < address + size ? "&larr; interrupted" : ""].filter(Boolean).join(" ");
      const shade = now.has(address) ? "lit" : read.has(address) ? "read" : "";
      return `${gap}<tr><td class="soft">${hex(address, 0)}</td><td>${html(name)}</td><td class="${shade}">${hex(words.get(address), digits)}</td><td>${marks}</td></tr>`;
    });
    $("stack").innerHTML = rows.length ? `<table>${rows.join("")}</table>` : '<p class="soft">Nothing of the stack has been used yet.</p>';
    reveal("stack", ".lit, .read");
  }

  function showChain(step) {
    const asked = steps().slice(0, step.index + 1).filter((one) => one.stage === "handler chain" && (one.text.endsWith("()") || "answer" in one.facts));
    const rows = asked.filter((one) => !one.text.startsWith("dtrace_")).map((one) => {
      const answer = "answer" in one.facts;
      const text = answer ? `${html(one.facts.answer)} <span class="${one.facts.answer === "0x0" ? "no" : "yes"}">${html(one.facts.meaning)}</span>` : "asked";
      return `<tr class="${one === step ? "here" : ""}"><td>${html(one.text.replace("()", "").replace(" answers", ""))}</td><td>${text}</td></tr>`;
    });
    $("chain").innerHTML = rows.length ? `<table>${rows.join("")}</table>` : '<p class="soft">No handler has been asked yet.</p>';
  }

  function showArguments(step) {
    const fired = steps().slice(0, step.index + 1).filter((one) => one.stage === "probe" && one.text === firing().probe).pop();
    if (!fired) { $("arguments").innerHTML = '<p class="soft">The probe has not fired yet.</p>'; return; }
    const facts = Object.entries(fired.facts).map(([name, value]) => `<tr><td>${html(name)}</td><td>${html(value)}</td></tr>`);
    $("arguments").innerHTML = `<p><code>${html(firing().probe)}</code> in ${html(firing().execname)}, pid ${firing().pid}</p><table>${facts.join("")}</table>`;
  }

  function showDif(step) {
    const done = steps().slice(0, step.index + 1).filter((one) => one.dif);
    const rows = done.map((one) => `<tr class="${one === step ? "here" : ""}"><td>${html(one.dif.object)}</td><td>${String(one.dif.offset).padStart(2, "0")}</td><td>${html(one.dif.text)}</td></tr>`);
    const last = done[done.length - 1];
    const registers = last ? `<p>${last.dif.registers.map((value, number) => (BigInt(value) ? `<code>%r${number}</code> ${html(value)}` : "")).filter(Boolean).join(", ")}</p>` : "";
    const records = steps().slice(0, step.index + 1).filter((one) => one.facts.record);
    const bytes = records.map((one) => `<p>record: <code>${html(one.facts.record)}</code></p>`).join("");
    $("dif").innerHTML = `<p><code>${html(recording().clause)}</code></p>` + (rows.length ? `<table>${rows.join("")}</table>` : '<p class="soft">No DIF has been executed.</p>') + registers + bytes;
    reveal("dif", ".here");
  }

  function showFunction(step) {
    const phase = step.stage === "disabled" ? "after" : "enabled";
    $("function").innerHTML = ["before", phase].map((name) => {
      const other = new Set(firing().listing[name === "before" ? phase : "before"] ?? []);
      // A line begins with its address.
      const lines = (firing().listing[name] ?? []).map((line) => (other.has(line) ? html(line) : `<ins>${html(line)}</ins>`));
      return `<p class="soft">${name}</p><pre>${lines.join("\n")}</pre>`;
    }).join("");
  }

  function showCost(step) {
    const names = { instructions: "instructions of the guest", accesses: "accesses to memory", traps: "traps", handlers: "handlers asked", dif: "instructions of DIF" };
    $("cost").innerHTML = `<table>${Object.entries(names).map(([name, text]) => `<tr><td>${step.cost[name]}</td><td>${text}</td></tr>`).join("")}</table>`;
  }

  function showOthers(step) {
    $("others-pane").hidden = recordings.length < 2;
    if (recordings.length < 2) return;
    const own = steps().filter((one) => one.stage === step.stage), index = own.indexOf(step);
    const rows = recordings.map((other, number) => {
      const found = other.firings[Math.min(state.firing, other.firings.length - 1)];
      const same = found ? found.steps.filter((one) => one.stage === step.stage) : [];
      const at = same.length ? same[own.length < 2 ? 0 : Math.round((index * (same.length - 1)) / (own.length - 1))] : null;
      const count = same.filter((one) => one.code).length;
      const text = at ? `<a href="#step=${at.index}&amp;recording=${number}">${at.index}</a></td><td>${count}</td><td>${html(at.text)}</td><td class="text">${html(at.sentence)}` : '</td><td>0</td><td colspan="2" class="soft">this stage does not occur';
      return `<tr class="${number === state.recording ? "here" : ""}"><td>${html(other.label)}</td><td>${text}</td></tr>`;
    });
    $("others").innerHTML = `<table><tr class="soft"><td></td><td>step</td><td>instructions</td><td></td><td></td></tr>${rows.join("")}</table>`;
  }

  function showStages(step) {
    const names = [...new Set(steps().map((one) => one.stage))];
    $("stages").innerHTML = names.map((name) => `<button type="button" ${name === step.stage ? 'aria-current="step"' : ""}>${html(name)}</button>`).join("");
    [...$("stages").children].forEach((button, index) => { button.onclick = () => go(steps().findIndex((one) => one.stage === names[index])); });
  }

  // -- moving

  function show() {
    const all = steps(), index = Math.max(0, Math.min(state.step, all.length - 1));
    state.step = index;
    const step = all[index];
    const values = registersAt(index);
    $("slider").max = all.length - 1;
    $("slider").value = index;
    $("slider").setAttribute("aria-valuetext", `step ${index} of ${all.length - 1}, ${step.stage}: ${step.text}`);
    $("position").textContent = `Step ${index} of ${all.length - 1} | ${step.stage} | ${step.mode} | ${step.where}${step.text ? " | " + step.text : ""}`;
    $("sentence").textContent = step.sentence;
    $("fault").hidden = !step.fault;
    $("fault").textContent = step.fault;
    $("note").hidden = !recording().note;
    $("note").textContent = recording().note;
    $("link").textContent = $("link").hash = `#step=${index}` + (state.recording ? `&recording=${state.recording}` : "") + (state.firing ? `&firing=${state.firing + 1}` : "");
    [...$("tabs").children].forEach((tab, number) => tab.setAttribute("aria-pressed", String(number === state.recording)));
    $("firing").value = String(state.firing);
    showStages(step);
    showCode(step);
    showRegisters(step, values);
    showStack(step, values);
    showChain(step);
    // An exhibit of the museum has no clause, and its probe no consumer.
    $("arguments-pane").hidden = $("dif-pane").hidden = firing().probe === "";
    showArguments(step);
    showDif(step);
    showFunction(step);
    showCost(step);
    showOthers(step);
    document.body.dataset.step = String(index);
  }

  function go(index) {
    state.step = Math.max(0, Math.min(index, steps().length - 1));
    // In a notebook the page is a frame without an address.
    if (location.protocol !== "about:") history.replaceState(null, "", `#step=${state.step}` + (state.recording ? `&recording=${state.recording}` : "") + (state.firing ? `&firing=${state.firing + 1}` : ""));
    show();
  }

  function stage(direction) {
    const all = steps(), here = all[state.step].stage;
    let index = state.step;
    while (all[index + direction] && all[index + direction].stage === here) index += direction;
    go(index + direction);
  }

  function fromHash() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const number = (name, most) => Math.max(0, Math.min(Number.parseInt(wanted.get(name) ?? "0", 10) || 0, most));
    state.recording = number("recording", recordings.length - 1);
    state.firing = Math.max(0, number("firing", recording().firings.length) - 1);
    state.step = number("step", steps().length - 1);
    choices();
    show();
  }

  function choices() {
    $("tabs").innerHTML = recordings.length < 2 ? "" : recordings.map((one) => `<button type="button" class="${one.good === null ? "" : one.good ? "good" : "bad"}">${html(one.label)}</button>`).join(" ");
    [...$("tabs").children].forEach((tab, number) => {
      tab.onclick = () => {
        const before = steps()[state.step].stage;
        state.recording = number;
        state.firing = Math.min(state.firing, recording().firings.length - 1);
        choices();
        go(Math.max(0, steps().findIndex((one) => one.stage === before)));
      };
    });
    $("firing-label").hidden = recording().firings.length < 2;
    $("firing").innerHTML = recording().firings.map((one, number) => `<option value="${number}">${number + 1}: ${html(one.probe)} in ${html(one.execname)}</option>`).join("");
  }

  const moves = { ArrowLeft: () => go(state.step - 1), ArrowRight: () => go(state.step + 1), Home: () => go(0), End: () => go(steps().length - 1), PageUp: () => stage(-1), PageDown: () => stage(1) };
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.tagName === "SELECT") return;
    if (moves[event.key]) { event.preventDefault(); moves[event.key](); }
  });
  $("first").onclick = moves.Home;
  $("previous").onclick = moves.ArrowLeft;
  $("next").onclick = moves.ArrowRight;
  $("last").onclick = moves.End;
  $("slider").oninput = () => go(Number($("slider").value));
  $("firing").onchange = () => { state.firing = Number($("firing").value); go(0); };
  window.addEventListener("hashchange", fromHash);
  window.addEventListener("beforeprint", () => { $("all").open = true; });
  fromHash();
})();
