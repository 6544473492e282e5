/** The language of the page. `public/boot.js` chooses it before the page is loaded. */

export const LANGUAGES = ['en', 'zh-Hans'] as const
export type Language = (typeof LANGUAGES)[number]
/** A choice of the user. `auto` is the language of the browser. */
export type LanguageChoice = Language | 'auto'

const KEY = 'moot.language' // read by `public/boot.js`

/** The language that is shown. Unit tests have no document and run in English. */
export const language: Language = LANGUAGES.find((one) => one === globalThis.document?.documentElement?.lang) ?? 'en'

/** The locale for dates. English dates have the day before the month. */
export const dateLocale = language === 'en' ? 'en-GB' : language

/** Return the stored choice, `auto` by default. */
export function chosenLanguage(): LanguageChoice {
  try {
    const stored = localStorage.getItem(KEY)
    return LANGUAGES.find((one) => one === stored) ?? 'auto'
  } catch {
    return 'auto' // storage is unavailable
  }
}

/** Store the choice and reload the page in that language. Return false if the browser stores nothing. */
export function chooseLanguage(choice: LanguageChoice): boolean {
  try {
    if (choice === 'auto') localStorage.removeItem(KEY)
    else localStorage.setItem(KEY, choice)
  } catch {
    return false
  }
  location.reload()
  return true
}
