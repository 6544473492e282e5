/** Matches control and format characters, unusual spaces, and invisible letters and marks. */
const HIDDEN =
  /(?![\t\n \u3000])[\p{Cc}\p{Cf}\p{Cs}\p{Z}\u115f\u1160\u3164\uffa0]|\u034f|\u17b4|\u17b5|[\u180b-\u180f]|[\ufe00-\ufe0d]|[\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]/gu

/** Escape characters that are invisible or reorder text, so that users see exactly what they approve. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
}
