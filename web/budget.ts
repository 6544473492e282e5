import { gzipSync } from 'node:zlib'
import type { Plugin } from 'vite'

type Bundle = Parameters<Extract<NonNullable<Plugin['generateBundle']>, (...args: never[]) => unknown>>[1]

/** Fails the build when what a browser fetches for the first view, a new conversation, is more than so many kB by gzip; says both that and with Markdown. */
export function budget(kilobytes: number): Plugin {
  return {
    name: 'budget',
    apply: 'build',
    generateBundle: {
      order: 'post',
      handler(_, bundle) {
        const first = weigh(bundle, ['index.html', 'NewConversation.tsx', 'Conversation.tsx'])
        const all = weigh(bundle, ['index.html', 'NewConversation.tsx', 'Conversation.tsx', 'Markdown.tsx'])
        const words = `first view ${first} kB by gzip (at most ${kilobytes}), a conversation with Markdown ${all} kB`
        if (first > kilobytes) this.error(words)
        this.info(words)
      },
    },
  }
}

/** What the chunks made from these modules and everything that they import at once weigh, styles included. */
function weigh(bundle: Bundle, modules: readonly string[]): number {
  const seen = new Set<string>()
  const visit = (name: string) => {
    const chunk = bundle[name]
    if (seen.has(name) || !chunk) return
    seen.add(name)
    if (chunk.type !== 'chunk') return
    for (const style of chunk.viteMetadata?.importedCss ?? []) visit(style)
    for (const imported of chunk.imports) visit(imported)
  }
  for (const chunk of Object.values(bundle)) {
    if (chunk.type === 'chunk' && modules.some((module) => chunk.facadeModuleId?.endsWith(`/${module}`)))
      visit(chunk.fileName)
  }
  const sizes = [...seen].map((name) => {
    const chunk = bundle[name]
    const content = chunk?.type === 'chunk' ? chunk.code : (chunk?.source ?? '')
    return gzipSync(content).length
  })
  return Math.round(sizes.reduce((sum, size) => sum + size, 0) / 100) / 10
}
