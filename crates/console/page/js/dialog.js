// A question that must be answered: a title, what there is to know, fields, and one act. It is the browser's own modal
// dialog, so focus stays inside, Escape leaves, and focus returns to where it was.

import { fill, h } from './dom.js';
import { icon } from './icons.js';
import { t } from './i18n.js';

/**
 * Asks. `fields` are inputs by name; `ready(values)` says whether the act may be done; `act(values)` does it and may throw, and
 * what it throws is shown. Resolves to true once the act is done, to false if the reader left.
 */
export function ask({ title, text, body = [], fields, accept, danger = false, ready = null, act }) {
  const inputs = new Map(fields.map((field) => [field.name, input(field)]));
  const values = () => Object.fromEntries([...inputs].map(([name, one]) => [name, one.value]));
  const fault = h('p', { class: 'fault', role: 'alert', hidden: true });
  const submit = h('button', { class: danger ? 'danger' : 'primary', type: 'submit' }, accept);
  const mayGo = ready ?? ((all) => Object.values(all).every((value) => value.trim() !== ''));
  const check = () => (submit.disabled = !mayGo(values()));
  const form = h('form', { method: 'dialog', novalidate: true, oninput: check },
    heading(title), text && h('p', {}, text), body, fields.map((field) => row(field, inputs.get(field.name))), fault,
    h('div', { class: 'acts' }, h('button', { type: 'button', value: 'leave' }, t('cancel')), submit));
  const dialog = h('dialog', { class: danger ? 'dialog grave' : 'dialog', 'aria-labelledby': 'dialog-title' }, form);
  check();
  return opened(dialog, form, submit, (done) => attempt({ act, values, fault, submit, check, done }));
}

function heading(title) {
  const leave = h('button', { class: 'bare', type: 'button', value: 'leave', 'aria-label': t('cancel') }, icon('close'));
  return h('div', { class: 'dialog-head' }, h('h2', { id: 'dialog-title' }, title), leave);
}

function opened(dialog, form, submit, attempted) {
  const asked = document.activeElement?.dataset.key;
  return new Promise((resolve) => {
    let result = false;
    const done = () => {
      result = true;
      dialog.close();
    };
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      if (!submit.disabled) attempted(done);
    });
    for (const leave of form.querySelectorAll('button[value="leave"]')) leave.addEventListener('click', () => dialog.close());
    dialog.addEventListener('close', () => {
      dialog.remove();
      back(asked);
      resolve(result);
    });
    document.body.append(dialog);
    dialog.showModal();
    (form.querySelector('input, textarea') ?? submit).focus();
  });
}

/** The browser gives the focus back to who asked; if that was drawn anew meanwhile, we do. */
function back(key) {
  if (document.activeElement !== document.body || !key) return;
  [...document.querySelectorAll('[data-key]')].find((one) => one.dataset.key === key)?.focus();
}

async function attempt({ act, values, fault, submit, check, done }) {
  submit.disabled = true;
  fault.hidden = true;
  try {
    await act(values());
    done();
  } catch (problem) {
    fill(fault, problem.message);
    fault.hidden = false;
    fault.scrollIntoView({ block: 'nearest' });
    check();
  }
}

function input({ name, type = 'text', rows = null, value = '', autocomplete = 'off', maxlength = null }) {
  const common = { id: `field-${name}`, name, autocomplete, maxlength, spellcheck: 'false', value };
  return rows ? h('textarea', { ...common, rows }) : h('input', { ...common, type });
}

function row({ name, label, hint }, one) {
  if (hint) one.setAttribute('aria-describedby', `hint-${name}`);
  return h('div', { class: 'field' }, h('label', { for: `field-${name}` }, label), hint && h('p', { class: 'small quiet', id: `hint-${name}` }, hint), one);
}
