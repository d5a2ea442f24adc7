const boxes = [...document.querySelectorAll('.choice input')];
const show = () => {
  const wanted = new Set(boxes.filter(box => box.checked).map(box => box.value));
  const known = new Set(boxes.map(box => box.value));
  for (const row of document.querySelectorAll('tr[data-isa]'))
    row.hidden = known.has(row.dataset.isa) && !wanted.has(row.dataset.isa);
};
for (const box of boxes) box.addEventListener('change', show);
show();
