// The layout of a tree: from left to right if the page is wide enough, else one node per line.

export const NODE = { width: 216, height: 46, across: 36, down: 10 };
const MIN_WIDTH = 172; // a wider tree scrolls
const NARROW = { indent: 18, down: 6 };

/**
 * across draws owners to the left of their objects, vertically centred. It sets x and y of each visible node,
 * {visible: children}, and returns the size of the drawing. `available` is the preferred width.
 */
export function across(roots, available) {
  let next = 0;
  const depths = depth(roots);
  const width = Math.max(MIN_WIDTH, Math.min(NODE.width, (available + NODE.across) / Math.max(1, depths) - NODE.across));
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

/** down draws one node per line, and indents owned objects. */
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

/** edge is the path of the line from an owner to an owned object. */
export function edge(owner, owned, narrow) {
  const middle = owned.y + NODE.height / 2;
  if (narrow) return `M${owner.x + 8} ${owner.y + NODE.height}V${middle}H${owned.x}`;
  const from = owner.x + owner.width;
  const bend = (owned.x - from) / 2;
  return `M${from} ${owner.y + NODE.height / 2}C${from + bend} ${owner.y + NODE.height / 2} ${owned.x - bend} ${middle} ${owned.x} ${middle}`;
}
