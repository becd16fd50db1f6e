// Drawing a part anew must not throw the reader out of it: the element that had the focus gets it back, by its `data-key`,
// and nothing is redrawn while it is being pressed or its text selected; the next turn will do.

let pressed = null;
addEventListener('pointerdown', (event) => (pressed = event.target), true);
for (const end of ['click', 'pointercancel', 'dragend']) addEventListener(end, () => (pressed = null), true);
addEventListener('pointerup', () => setTimeout(() => (pressed = null)), true);

/** Redraws what is inside `element` by `draw`, unless the reader is at work there. */
export function redrawn(element, draw) {
  if (pressed && element.contains(pressed)) return;
  const selection = getSelection();
  if (selection && !selection.isCollapsed && element.contains(selection.anchorNode)) return;
  const active = element.contains(document.activeElement) ? document.activeElement : null;
  const key = active?.dataset.key;
  draw();
  if (!key) return;
  const again = [...element.querySelectorAll('[data-key]')].find((one) => one.dataset.key === key);
  again?.focus({ preventScroll: true });
}
