/** A line that opens or closes a code block, also in quotes and lists. */
const FENCE = /^\s*(?:>\s?)*(?:(?:[-*+]|\d+[.)])\s+)?(`{3,}|~{3,})/

/** Matches inline code and formulas. Each alternative except the one for code has one group, which contains the formula. */
const FOUND = new RegExp(
  [
    /(?<!\\)(`+)(?!`)[\s\S]*?(?<!`)\1(?!`)/, // inline code
    /(?<!\\)\$\$([\s\S]+?)\$\$/,
    /(?<!\\)\\\[([\s\S]+?)(?<!\\)\\\](?!\()/,
    /(?<!\\)\\\(((?:(?!\n\s*\n)[\s\S])+?)(?<!\\)\\\)/,
    /(?<![\\$\w])\$(?![\s$])((?:\\.|[^$\\\n])+?)(?<!\s)\$(?![\w$])/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'g',
)

/** Rewrite `$…$`, `\(…\)` and `\[…\]` as `$$…$$`, the only form that the parser accepts as math. Code and prices are not changed. */
export function withFormulas(text: string): string {
  if (!/\$|\\[([]/.test(text)) return text
  const pieces: string[] = []
  let prose: string[] = []
  let fence = ''
  const flush = () => {
    if (prose.length) pieces.push(rewritten(prose.join('\n')))
    prose = []
  }
  for (const line of text.split('\n')) {
    const mark = FENCE.exec(line)?.[1] ?? ''
    if (fence) {
      pieces.push(line)
      if (mark.startsWith(fence) && line.trim().endsWith(mark)) fence = ''
    } else if (mark) {
      flush()
      pieces.push(line)
      fence = mark
    } else prose.push(line)
  }
  flush()
  return pieces.join('\n')
}

function rewritten(prose: string): string {
  return prose.replace(FOUND, (whole: string, _code, dollars, brackets, parens, dollar, at: number) => {
    const own = lineOf(prose, at, at + whole.length)
    if (dollars !== undefined) return own === null || dollars.startsWith('\n') ? whole : block(dollars, own)
    if (brackets !== undefined) {
      if (own !== null && brackets.trim()) return block(brackets, own)
      return isFormula(brackets) ? `$$${brackets.trim()}$$` : whole
    }
    if (parens !== undefined) return isFormula(parens) ? `$$${parens.trim()}$$` : whole
    if (dollar !== undefined) return isPrice(dollar) ? whole : `$$${dollar}$$`
    return whole
  })
}

/** Return the spaces and quote markers before a formula if its line contains nothing else, otherwise null. */
function lineOf(text: string, from: number, to: number): string | null {
  const before = text.slice(text.lastIndexOf('\n', from - 1) + 1, from)
  return /^[\s>]*$/.test(before) && /^[ \t]*(\n|$)/.test(text.slice(to)) ? before : null
}

function block(formula: string, before: string): string {
  const lines = formula.split('\n').map((line) => line.replace(/^[\s>]+/, '').trimEnd())
  return ['$$', ...lines.filter(Boolean), '$$'].join(`\n${before}`)
}

/** Return false for escaped brackets around words, such as `\(note\)`. */
function isFormula(text: string): boolean {
  return text.trim() !== '' && (/[\\^_={}+<>|]/.test(text) || !/[a-z]{4,}/i.test(text))
}

/** Return true for an amount followed by words, such as `$5 and 6$`. */
function isPrice(text: string): boolean {
  return /^\d/.test(text) && /(^|\s)[a-z]{2,}/i.test(text) && !/[\\^_={}]/.test(text)
}
