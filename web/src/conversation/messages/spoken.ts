const LONGEST = 200

/**
 * Return the text of an answer to read aloud: without code blocks, formulas and Markdown signs, in pieces of at most a few sentences,
 * because browsers stop in the middle of long texts.
 */
export function spoken(markdown: string): string[] {
  const plain = markdown
    .replace(/^ {0,3}(```+|~~~+)[^\n]*\n[\s\S]*?(?:^ {0,3}\1[^\n]*$|$(?![\s\S]))/gm, '\n')
    .replace(/\$\$[\s\S]*?\$\$|\\\[[\s\S]*?\\\]/g, ' ')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/^\s*\|?[\s:|-]*-{3}[\s:|-]*$/gm, '')
    .replace(/^\s{0,3}(?:#{1,6}|>|[-*+]|\d+[.)])\s+/gm, '')
    .replace(/(\*\*|__|\*|~~|`)(?=\S)([^\n]*?\S)\1/g, '$2')
    .replace(/\|/g, ' ')
  return plain.split(/\n+/).flatMap((line) => sentences(line.trim()))
}

/** Split a paragraph at the ends of sentences, and join short sentences. */
function sentences(line: string): string[] {
  const found: string[] = []
  for (const sentence of line.match(/[^.!?。！？]+[.!?。！？]*\s*|[.!?。！？]+\s*/g) ?? []) {
    const last = found.at(-1)
    if (last !== undefined && last.length + sentence.length <= LONGEST) found[found.length - 1] = last + sentence
    else found.push(sentence)
  }
  return found.map((one) => one.trim()).filter((one) => /[\p{L}\p{N}]/u.test(one))
}
