// Making elements. Text goes in as text nodes, attributes by name; nothing here, and nothing elsewhere in this page,
// parses markup, so what a stranger wrote into a lock's name can never become part of the page.

/** An element: `h('p', { class: 'quiet' }, 'text', child)`. Empty children are left out. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for drawings. */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name.startsWith('--')) element.style.setProperty(name, value);
    else if (name === 'value') element.value = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...flat(children));
  return element;
}

function flat(children) {
  return children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false);
}

/** Puts these children in place of those that are there. */
export function fill(element, ...children) {
  element.replaceChildren(...flat(children));
  return element;
}
