import type { Root } from 'hast'
import { visit } from 'unist-util-visit'

/** Render HTML in Markdown as plain text, never as elements. */
export function literalHtml() {
  return (tree: Root): void => {
    visit(tree, (node, index, parent) => {
      if ((node.type as string) !== 'raw' || !parent || index === undefined) return
      parent.children[index] = { type: 'text', value: (node as unknown as { value: string }).value }
    })
  }
}

/** Replace `rehype-raw`, whose large HTML parser is not needed here. */
export default literalHtml
