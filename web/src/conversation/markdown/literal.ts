import type { Root } from 'hast'
import { visit } from 'unist-util-visit'

/** Shows HTML in Markdown as the text that it is: it never becomes elements. */
export function literalHtml() {
  return (tree: Root): void => {
    visit(tree, (node, index, parent) => {
      if ((node.type as string) !== 'raw' || !parent || index === undefined) return
      parent.children[index] = { type: 'text', value: (node as unknown as { value: string }).value }
    })
  }
}

/** Stands in the place of `rehype-raw`, whose HTML parser is larger than the rest of the Markdown together and is not wanted here. */
export default literalHtml
