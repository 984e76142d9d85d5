// The layout of a tree: from left to right if the page is wide enough, else one node per line.

/** NODE has the size of a node with its kind and its name. A node that has more text is `tall`. */
export const NODE = { width: 216, height: 46, tall: 66, across: 36, down: 10 };
const MIN_WIDTH = 172; // a wider tree scrolls
const NARROW = { indent: 18, down: 6 };

/**
 * across draws owners to the left of their objects, vertically centred. It sets x and y of each visible node,
 * {height, visible: children}, and returns the size of the drawing. `available` is the preferred width.
 */
export function across(roots, available) {
  const depths = depth(roots);
  const width = Math.max(MIN_WIDTH, Math.min(NODE.width, (available + NODE.across) / Math.max(1, depths) - NODE.across));
  const place = (nodes, level, from) => {
    let top = from;
    for (const node of nodes) {
      node.x = level * (width + NODE.across);
      node.width = width;
      place(node.visible, level + 1, top + (node.span - spanOf(node.visible)) / 2);
      node.y = (node.visible.length ? (centre(node.visible[0]) + centre(node.visible.at(-1))) / 2 : top + node.height / 2) - node.height / 2;
      top += node.span + NODE.down;
    }
  };
  measure(roots);
  place(roots, 0, 0);
  return { width: Math.max(0, depths * (width + NODE.across) - NODE.across), height: spanOf(roots) };
}

// measure sets the span of each node: the height of the node and of everything below it.
function measure(nodes) {
  for (const node of nodes) {
    measure(node.visible);
    node.span = Math.max(node.height, spanOf(node.visible));
  }
}

function spanOf(siblings) {
  return Math.max(0, siblings.reduce((sum, { span }) => sum + span + NODE.down, -NODE.down));
}

function centre({ y, height }) {
  return y + height / 2;
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
    next += node.height + NARROW.down;
    for (const child of node.visible) place(child, depth + 1);
  };
  for (const root of roots) place(root, 0);
  return { width, height: Math.max(0, next - NARROW.down) };
}

/** edge is the path of the line from an owner to an owned object. */
export function edge(owner, owned, narrow) {
  const middle = centre(owned);
  if (narrow) return `M${owner.x + 8} ${owner.y + owner.height}V${middle}H${owned.x}`;
  const from = owner.x + owner.width;
  const bend = (owned.x - from) / 2;
  return `M${from} ${centre(owner)}C${from + bend} ${centre(owner)} ${owned.x - bend} ${middle} ${owned.x} ${middle}`;
}
