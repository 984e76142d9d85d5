// The kubectl commands that help with an object, each with a button that copies it.

import { announce, h } from './dom.js';
import { copyText } from './export.js';
import { rolloutFails } from './rollout.js';
import { plain } from './text.js';

const MESSAGE_TIME = 2000; // how long a button says that it has copied, in milliseconds

/**
 * commandList shows the commands for an object, or null. `definition` is null if it is not known. Commands that change the cluster
 * are shown only if `live` is true: the object may have changed since.
 */
export function commandList(object, definition, live) {
  const commands = commandsOf(object, definition, live);
  if (!commands.length) return null;
  return h('section', { class: 'commands', 'aria-labelledby': 'commands-title' },
    h('h3', { id: 'commands-title' }, 'Commands'),
    h('ul', {}, commands.map(([purpose, command]) => h('li', { 'data-key': command },
      h('span', { class: 'purpose' }, purpose), h('code', {}, command),
      h('button', { type: 'button', class: 'quiet', 'aria-label': `Copy: ${purpose}`, onclick: copy }, 'Copy')))));
}

async function copy({ currentTarget: button }) {
  const code = button.previousElementSibling;
  if (await copyText(code.textContent)) {
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, MESSAGE_TIME);
    announce('Copied');
    return;
  }
  getSelection().selectAllChildren(code);
  announce('The browser does not allow copying. The command is selected.');
}

// commandsOf returns a purpose and a command for each thing that can be done with an object.
function commandsOf(o, definition, live) {
  const { group, kind, namespace, name } = o.object;
  if (o.gone || (o.state && o.state !== 'Present') || [kind, namespace, name].some(isOption)) return [];
  const resource = plain(group ? `${kind}.${group}` : kind).toLowerCase();
  const inNamespace = namespace ? ['-n', namespace] : [];
  const isPod = resource === 'pod';
  return [
    ...(isPod ? logs(o, inNamespace) : []),
    ...(isPod || !o.listed ? [['Describe', line('kubectl', 'describe', resource, ...inNamespace, name)]] : []),
    ...(rolloutFails(o, definition) ? rollout(kind, inNamespace, name, live) : []),
  ];
}

function logs({ object: { name }, pod }, inNamespace) {
  return (pod?.containers ?? []).filter((c) => !isOption(c.name)).flatMap((c) => {
    const command = ['kubectl', 'logs', ...inNamespace, name, '-c', c.name];
    return [
      c.restarts > 0 && [`Logs of ${plain(c.name)} before its last restart`, line(...command, '--previous')],
      hasLogs(c) && [`Logs of ${plain(c.name)}`, line(...command)],
    ].filter(Boolean);
  });
}

// hasLogs is false for a container that never started, and for an init container that has done its work.
function hasLogs({ type, state, lastExit }) {
  return state === 'Running' || (state === 'Terminated' && !(type === 'init' && lastExit?.code === 0));
}

function rollout(kind, inNamespace, name, live) {
  const target = `${kind.toLowerCase()}/${name}`;
  return [
    ['Revisions', line('kubectl', 'rollout', 'history', ...inNamespace, target)],
    live && ['Return to the previous revision', line('kubectl', 'rollout', 'undo', ...inNamespace, target)],
  ].filter(Boolean);
}

// isOption is true for a name that kubectl would take for an option. Kubernetes has no such names.
function isOption(word) {
  return String(word ?? '').startsWith('-');
}

function line(...words) {
  return words.map(quoted).join(' ');
}

/** quoted is a word of a shell command. */
export function quoted(word) {
  const text = plain(word);
  return /^[\w.\/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
