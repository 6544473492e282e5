import { gzipSync } from 'node:zlib'
import type { Plugin } from 'vite'

type Bundle = Parameters<Extract<NonNullable<Plugin['generateBundle']>, (...args: never[]) => unknown>>[1]

/** Fail the build if the first view, a new conversation, exceeds the given kB of gzip. Print its size, also with Markdown. */
export function budget(kilobytes: number): Plugin {
  return {
    name: 'budget',
    apply: 'build',
    generateBundle: {
      order: 'post',
      handler(_, bundle) {
        const first = weigh(bundle, ['index.html', 'Conversation.tsx'])
        const all = weigh(bundle, ['index.html', 'Conversation.tsx', 'Markdown.tsx'])
        const summary = `first view ${first} kB by gzip (at most ${kilobytes}), a conversation with Markdown ${all} kB`
        if (first > kilobytes) this.error(summary)
        this.info(summary)
      },
    },
  }
}

/** Return the gzip size in kB of the chunks of these modules and all their static imports, including styles. */
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
