import type { Node } from '@/api/types'

/** The messages that stand in the same place as this one, in the order they were made, this one among them. */
export function siblings(nodes: readonly Node[], id: string): Node[] {
  const own = nodes.find((node) => node.id === id)
  if (!own) return []
  return nodes.filter((node) => node.parent === own.parent && node.role === own.role && !node.deleted)
}
