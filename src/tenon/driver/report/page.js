"use strict";
// Sorting, filtering, zoom, search and colours of code. Everything is readable without it.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // ---- tables that sort by a column: cells have the number to sort by in data-v.
  const key = (row, column) => {
    const cell = row.cells[column];
    const value = cell ? cell.dataset.v ?? cell.textContent : "";
    const number = Number(value);
    return value !== "" && !Number.isNaN(number) ? number : value.toLowerCase();
  };
  const sort = (table, column, descending) => {
    const body = table.tBodies[0];
    const order = (a, b) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? 1 : -1);
    const rows = [...body.rows].map((row, i) => [key(row, column), i, row]);
    rows.sort((a, b) => (descending ? order(b[0], a[0]) : order(a[0], b[0])) || a[1] - b[1]);
    body.append(...rows.map((row) => row[2]));
    all("th", table).forEach((head, i) => {
      if (i === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  };
  for (const table of all("table.sortable")) {
    all("th", table).forEach((head, column) => {
      const click = () => {
        const now = head.getAttribute("aria-sort");
        sort(table, column, now ? now === "ascending" : head.classList.contains("n"));
      };
      head.tabIndex = 0;
      head.addEventListener("click", click);
      head.addEventListener("keydown", (event) => { if (event.key === "Enter") click(); });
      if (head.dataset.first) sort(table, column, true);
    });
  }

  // ---- rows that are shown by words and by choices
  for (const tools of all("[data-filters]")) {
    const rows = all(tools.dataset.filters);
    const words = tools.querySelector("input");
    const choices = all("select", tools);
    const count = tools.querySelector(".count");
    const show = () => {
      const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = (row.dataset.text ?? row.textContent).toLowerCase();
        const is = wanted.every((word) => text.includes(word)) &&
          choices.every((choice) => !choice.value || row.dataset[choice.name] === choice.value);
        row.classList.toggle("none", !is);
        shown += is;
      }
      if (count) count.textContent = `${shown} of ${rows.length}`;
    };
    tools.addEventListener("input", show);
    show();
  }

  // ---- the graph: zoom by buttons, Ctrl and the wheel, or two fingers; pan by dragging
  for (const view of all(".graph")) {
    const svg = view.querySelector("svg");
    const width = Number(svg.dataset.w), height = Number(svg.dataset.h);
    let zoom = 1;
    const fit = () => Math.min(1, (view.clientWidth - 4) / width);
    const set = (next, x = view.clientWidth / 2, y = view.clientHeight / 2) => {
      next = Math.min(4, Math.max(0.02, next));
      const box = svg.getBoundingClientRect(), frame = view.getBoundingClientRect();
      const px = (x + frame.left - box.left) / zoom, py = (y + frame.top - box.top) / zoom;
      zoom = next;
      svg.setAttribute("width", width * zoom);
      svg.setAttribute("height", height * zoom);
      const moved = svg.getBoundingClientRect();
      view.scrollLeft += moved.left - frame.left + px * zoom - x;
      view.scrollTop += moved.top - frame.top + py * zoom - y;
    };
    const first = Math.max(fit(), Math.min(0.6, 1));
    set(first);
    view.scrollTop = 0;
    view.scrollLeft = (view.scrollWidth - view.clientWidth) / 2;
    const tools = document.getElementById(view.dataset.tools);
    tools.addEventListener("click", (event) => {
      const what = event.target.dataset.zoom;
      if (what === "in") set(zoom * 1.3);
      if (what === "out") set(zoom / 1.3);
      if (what === "width") { set(fit()); view.scrollTo(0, 0); }
      if (what === "all") { set(Math.min(fit(), (view.clientHeight - 4) / height)); view.scrollTo(0, 0); }
    });
    view.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const frame = view.getBoundingClientRect();
      set(zoom * Math.exp(-event.deltaY / 300), event.clientX - frame.left, event.clientY - frame.top);
    }, { passive: false });
    let drag = null, moved = false;
    view.addEventListener("pointerdown", (event) => {
      moved = false;
      if (event.pointerType === "mouse" && event.button === 0) drag = [event.clientX, event.clientY, view.scrollLeft, view.scrollTop];
    });
    window.addEventListener("pointermove", (event) => {
      if (!drag) return;
      const dx = event.clientX - drag[0], dy = event.clientY - drag[1];
      if (Math.abs(dx) + Math.abs(dy) > 4) { moved = true; view.classList.add("dragged"); }
      if (moved) { view.scrollLeft = drag[2] - dx; view.scrollTop = drag[3] - dy; }
    });
    window.addEventListener("pointerup", () => { drag = null; view.classList.remove("dragged"); });
    view.addEventListener("dragstart", (event) => event.preventDefault());
    view.addEventListener("click", (event) => { if (moved) { event.preventDefault(); event.stopPropagation(); } }, true);
    let pinch = null;
    const spread = (touches) => Math.hypot(touches[0].clientX - touches[1].clientX, touches[0].clientY - touches[1].clientY);
    view.addEventListener("touchstart", (event) => { pinch = event.touches.length === 2 ? [spread(event.touches), zoom] : null; }, { passive: true });
    view.addEventListener("touchmove", (event) => {
      if (!pinch || event.touches.length !== 2) return;
      event.preventDefault();
      const frame = view.getBoundingClientRect();
      set(pinch[1] * spread(event.touches) / pinch[0],
        (event.touches[0].clientX + event.touches[1].clientX) / 2 - frame.left,
        (event.touches[0].clientY + event.touches[1].clientY) / 2 - frame.top);
    }, { passive: false });

    // ---- search: boxes whose functions, nodes or types hold the words
    const search = tools.querySelector("input");
    const boxes = all("[data-text]", svg);
    const count = tools.querySelector(".count");
    let hits = [], at = -1;
    const visit = () => {
      const frame = view.getBoundingClientRect(), box = hits[at].getBoundingClientRect();
      view.scrollLeft += box.left + box.width / 2 - frame.left - frame.width / 2;
      view.scrollTop += box.top + box.height / 2 - frame.top - frame.height / 2;
      count.textContent = `${at + 1} of ${hits.length}`;
    };
    search.addEventListener("input", () => {
      const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      hits = wanted.length ? boxes.filter((box) => wanted.every((word) => box.dataset.text.toLowerCase().includes(word))) : [];
      const found = new Set(hits);
      for (const box of boxes) {
        box.classList.toggle("hit", found.has(box));
        box.classList.toggle("dim", wanted.length > 0 && !found.has(box));
      }
      at = hits.length ? 0 : -1;
      count.textContent = wanted.length && !hits.length ? "nothing found" : "";
      if (hits.length) visit();
    });
    search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !hits.length) return;
      event.preventDefault();
      at = (at + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
      visit();
    });
  }

  // ---- a link to something folded opens it
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let place = target; place; place = place.parentElement)
      if (place.tagName === "DETAILS") place.open = true;
    target.classList.remove("none");
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", reveal);
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a");
    const where = link && (link.getAttribute("href") ?? "");
    if (where && where === location.hash) reveal();
  });
  if (location.hash) reveal();

  // ---- colours of code, when it is first shown
  const rules = {
    script: /(#[^\n]*)|("(?:[^"\\\n]|\\.)*")|\b(def|for|in|with|class|if|else|return|while|not|and|or|True|False|None|pass|assert)\b|\b(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\b|\b([TRI]\.[\w.]+)/g,
    c: /(\/\*[\s\S]*?\*\/|\/\/[^\n]*|^#[^\n]*)|("(?:[^"\\\n]|\\.)*")|\b(static|const|inline|void|for|if|else|return|while|struct|typedef|sizeof|NOINLINE|INLINE|ALIGNED)\b|\b(\d+(?:\.\d+)?(?:e[+-]?\d+)?[flu]*)\b|\b(float|double|char|s?size_t|u?int\d+_t|f32x\d+)\b/gm,
    assembly: /(#[^\n]*)|("(?:[^"\\\n]|\\.)*")|^(\t[a-z][\w.]*)|(\$-?\w+|\b0x[0-9a-f]+\b)|(%\w+|^[.\w]+:)/gm,
  };
  const classes = ["", "tc", "ts", "tk", "tn", "tf"];
  const colour = (pre) => {
    const rule = rules[pre.dataset.code];
    const text = pre.textContent;
    if (!rule || text.length > 200000) return;
    const out = document.createDocumentFragment();
    let at = 0;
    for (const match of text.matchAll(rule)) {
      out.append(text.slice(at, match.index));
      const span = document.createElement("span");
      span.className = classes[match.slice(1).findIndex((group) => group !== undefined) + 1];
      span.textContent = match[0];
      out.append(span);
      at = match.index + match[0].length;
    }
    out.append(text.slice(at));
    pre.replaceChildren(out);
  };
  document.addEventListener("toggle", (event) => {
    if (event.target.tagName !== "DETAILS" || !event.target.open) return;
    for (const pre of all(":scope > pre[data-code]", event.target)) {
      if (pre.dataset.done) continue;
      pre.dataset.done = "1";
      colour(pre);
    }
  }, true);
})();
