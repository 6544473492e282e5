/** Return true if the server has a newer build of the page than this tab, for example after an upgrade. */
export async function isStale(): Promise<boolean> {
  const own = document.querySelector('script[type=module][src]')?.getAttribute('src')
  if (!own) return false
  try {
    const response = await fetch('/', { cache: 'no-store' })
    return response.ok && !(await response.text()).includes(`"${own}"`)
  } catch {
    return false // the server can't be reached: a reload would only show an error page of the browser
  }
}
