import { createHighlighterCore, type HighlighterCore } from 'shiki/core'
import { createJavaScriptRegexEngine } from 'shiki/engine/javascript'
import { bundledLanguages } from 'shiki/langs'
import type { Tokens } from '@/conversation/markdown/highlight'

const ready: Promise<HighlighterCore> = createHighlighterCore({
  themes: [import('shiki/themes/github-light-default.mjs'), import('shiki/themes/github-dark-default.mjs')],
  langs: [],
  engine: createJavaScriptRegexEngine({ forgiving: true }),
})

async function tokensOf(text: string, language: string): Promise<Tokens | null> {
  const load = bundledLanguages[language as keyof typeof bundledLanguages]
  if (!load) return null
  const highlighter = await ready
  await highlighter.loadLanguage(load)
  const { tokens } = highlighter.codeToTokens(text, {
    lang: language,
    themes: { light: 'github-light-default', dark: 'github-dark-default' },
    defaultColor: false,
  })
  return tokens.map((line) =>
    line.map((token) => {
      const style = (token.htmlStyle ?? {}) as Record<string, string>
      return [token.content, style['--shiki-light'] ?? '', style['--shiki-dark'] ?? '']
    }),
  )
}

addEventListener('message', ({ data }: MessageEvent<{ id: number; text: string; language: string }>) => {
  void tokensOf(data.text, data.language)
    .catch(() => null)
    .then((tokens) => postMessage({ id: data.id, tokens }))
})
