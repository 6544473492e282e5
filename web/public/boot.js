// Offers a reload if the page's own files can't be fetched. This file imports nothing, so that it loads when others don't.
function offerReload() {
  const root = document.getElementById('root')
  if (!root || root.childElementCount) return
  const main = document.createElement('main')
  const heading = document.createElement('h1')
  const about = document.createElement('p')
  const button = document.createElement('button')
  heading.textContent = 'This page couldn’t be loaded'
  about.textContent = 'moot may have been updated, or the server can’t be reached. Reload the page to try again.'
  button.textContent = 'Reload'
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
