// Where the nodes of a tree are drawn: from left to right where there is room, else one below the other.

export const NODE = { width: 216, height: 46, across: 36, down: 10 };
const NARROWEST = 172; // rather than smaller nodes, the picture scrolls
const NARROW = { indent: 18, down: 6 };

/**
 * across puts owners to the left of what they own, in the middle of its height. It sets x and y of each visible node,
 * {visible: nodes below}, and returns the size of the picture. `room` is how wide it would better be.
 */
export function across(roots, room) {
  let next = 0;
  const depths = depth(roots);
  const width = Math.max(NARROWEST, Math.min(NODE.width, (room + NODE.across) / Math.max(1, depths) - NODE.across));
  const place = (node, level) => {
    node.x = level * (width + NODE.across);
    node.width = width;
    if (!node.visible.length) {
      node.y = next;
      next += NODE.height + NODE.down;
      return;
    }
    for (const child of node.visible) place(child, level + 1);
    node.y = (node.visible[0].y + node.visible.at(-1).y) / 2;
  };
  for (const root of roots) place(root, 0);
  return { width: Math.max(0, depths * (width + NODE.across) - NODE.across), height: Math.max(0, next - NODE.down) };
}

function depth(nodes) {
  return nodes.reduce((most, node) => Math.max(most, 1 + depth(node.visible)), 0);
}

/** down puts each node on a line of its own, what is owned further to the right. */
export function down(roots, width) {
  let next = 0;
  const place = (node, depth) => {
    node.x = Math.min(depth, 8) * NARROW.indent;
    node.width = Math.max(120, width - node.x);
    node.y = next;
    next += NODE.height + NARROW.down;
    for (const child of node.visible) place(child, depth + 1);
  };
  for (const root of roots) place(root, 0);
  return { width, height: Math.max(0, next - NARROW.down) };
}

/** edge is the path of the line from an owner to what it owns. */
export function edge(owner, owned, narrow) {
  const middle = owned.y + NODE.height / 2;
  if (narrow) return `M${owner.x + 8} ${owner.y + NODE.height}V${middle}H${owned.x}`;
  const from = owner.x + owner.width;
  const bend = (owned.x - from) / 2;
  return `M${from} ${owner.y + NODE.height / 2}C${from + bend} ${owner.y + NODE.height / 2} ${owned.x - bend} ${middle} ${owned.x} ${middle}`;
}
