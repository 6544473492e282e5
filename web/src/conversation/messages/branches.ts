import type { Node } from '@/api/types'

/** Return all versions of a message in creation order, including itself. */
export function siblings(nodes: readonly Node[], id: string): Node[] {
  const own = nodes.find((node) => node.id === id)
  if (!own) return []
  return nodes.filter((node) => node.parent === own.parent && node.role === own.role && !node.deleted)
}
