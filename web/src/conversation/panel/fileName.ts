const ENDINGS: Readonly<Record<string, string>> = {
  bash: 'sh',
  csharp: 'cs',
  javascript: 'js',
  kotlin: 'kt',
  markdown: 'md',
  mermaid: 'mmd',
  perl: 'pl',
  powershell: 'ps1',
  python: 'py',
  ruby: 'rb',
  rust: 'rs',
  shell: 'sh',
  typescript: 'ts',
}
/** Names of languages that have no ending. */
const WHOLE: Readonly<Record<string, string>> = { docker: 'Dockerfile', dockerfile: 'Dockerfile', makefile: 'Makefile' }

/** Return the name under which a code block is saved. Most languages are named like the ending of their files. */
export function fileNameOf(language: string): string {
  const ending = ENDINGS[language] ?? (/^[a-z0-9]{1,8}$/.test(language) ? language : 'txt')
  return WHOLE[language] ?? `code.${ending}`
}
