// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression must match control characters
const SEQUENCES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[@-Z\\-_])/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above
const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g

/** Convert terminal output to plain text. Colors and cursor moves are removed, and lines that were rewritten show their last version. */
export function plain(text: string): string {
  return text
    .replace(SEQUENCES, '')
    .replace(/\r\n/g, '\n')
    .replace(/[^\n]*\r(?=[^\n])/g, '')
    .replace(CONTROLS, '')
}
