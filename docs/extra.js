// What is wider than the page scrolls in its own place; give keyboards a way to it, and a name to its landmark.
(() => {
  function reach() {
    for (const box of document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
    document.querySelectorAll(".md-code__nav").forEach((nav, index) => {
      nav.setAttribute("aria-label", `Code block ${index + 1}`);
    });
  }
  // The theme adds its buttons and wraps its tables when they come into view.
  const article = document.querySelector("article");
  if (article) new MutationObserver(reach).observe(article, { childList: true, subtree: true });
  addEventListener("load", reach);
  addEventListener("resize", reach);
})();
