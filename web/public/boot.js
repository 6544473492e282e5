// This file imports nothing, so that it loads when other files don't.

// Set the language: the one that the user chose, or else the first language of the browser that the page has.
function languageOf(wanted) {
  const tag = wanted.find((one) => /^(en|zh)(-|$)/i.test(one))
  return tag && /^zh/i.test(tag) ? 'zh-Hans' : 'en'
}

function storedLanguage() {
  try {
    return localStorage.getItem('moot.language') ?? ''
  } catch {
    return '' // storage is unavailable
  }
}

document.documentElement.lang = languageOf([storedLanguage(), ...navigator.languages])

// Offer a reload if the page's own files can't be fetched.
const FAILURE = {
  en: [
    'This page couldn’t be loaded',
    'moot may have been updated, or the server can’t be reached. Reload the page to try again.',
    'Reload',
  ],
  'zh-Hans': ['页面加载失败', 'moot 可能已更新，或者无法连接服务器。请重新加载页面。', '重新加载'],
}

function offerReload() {
  const root = document.getElementById('root')
  if (!root || root.childElementCount) return
  const main = document.createElement('main')
  const heading = document.createElement('h1')
  const about = document.createElement('p')
  const button = document.createElement('button')
  const words = FAILURE[document.documentElement.lang]
  heading.textContent = words[0]
  about.textContent = words[1]
  button.textContent = words[2]
  button.type = 'button'
  button.addEventListener('click', () => location.reload())
  main.style.cssText = 'margin: 20vh auto; max-width: 28rem; padding: 2rem; text-align: center; font-family: system-ui, sans-serif'
  main.append(heading, about, button)
  root.append(main)
}

addEventListener(
  'error',
  ({ target }) => {
    if (!(target instanceof HTMLScriptElement)) return
    if (document.readyState === 'loading') addEventListener('DOMContentLoaded', offerReload)
    else offerReload()
  },
  true,
)
addEventListener('unhandledrejection', offerReload) // a file that the first script loads
