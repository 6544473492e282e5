import { Menu as MenuIcon, Search, WifiOff } from 'lucide-react'
import { type ReactNode, useEffect, useState } from 'react'
import { useLocation } from 'wouter'
import { whenSignedOut } from '@/api/client'
import { useOnline } from '@/api/online'
import { Drawer } from '@/app/Drawer'
import { deferred } from '@/app/deferred'
import { useRunNotifications } from '@/app/notifications'
import { open as openPanel, usePanels } from '@/app/panels'
import { Sidebar } from '@/app/Sidebar'
import { SignIn } from '@/app/SignIn'
import { useOwnOutbox } from '@/app/session'
import { useTitleCount } from '@/app/title'
import { useOpenCount } from '@/data/approvals'
import { useActionKeys } from '@/keys/configured'
import { listen, useShortcut } from '@/keys/shortcuts'
import { useFilterInAddress } from '@/lists/filter'
import { useConversationKeys } from '@/lists/walking'
import { Palette } from '@/search/Palette'
import { text } from '@/text'
import { choose, chosen, THEMES } from '@/theme/choice'
import { IconButton } from '@/ui/Button'
import { Toasts } from '@/ui/Toasts'
import { notify } from '@/ui/toasts'

const Help = deferred(async () => ({ default: (await import('@/keys/Help')).Help }))

/** The frame around every view: sidebar, overlays and notifications, or the sign-in page. */
export function Shell({ children }: { children: ReactNode }) {
  const [signedOut, setSignedOut] = useState(false)
  useEffect(() => whenSignedOut(() => setSignedOut(true)), [])
  useEffect(listen, [])
  if (signedOut) return <SignIn />
  return <SignedIn>{children}</SignedIn>
}

function SignedIn({ children }: { children: ReactNode }) {
  const panels = usePanels()
  const [location] = useLocation()
  const { open } = panels
  // biome-ignore lint/correctness/useExhaustiveDependencies: close overlays on navigation
  useEffect(() => open(null), [location, open])
  useKeys()
  useConversationKeys()
  useOwnOutbox()
  useFilterInAddress()
  return (
    <div className="flex h-dvh overflow-hidden bg-surface">
      <SkipLink />
      {panels.sidebar && (
        <div className="hidden w-72 shrink-0 border-r border-line md:flex">
          <Sidebar />
        </div>
      )}
      <div className="flex min-w-0 grow flex-col">
        <TopBar />
        <OfflineBanner />
        {children}
      </div>
      <Background />
      {panels.shown === 'drawer' && <Drawer onClose={closePanel} />}
      {panels.shown === 'palette' && <Palette onClose={closePanel} />}
      {panels.shown === 'help' && <Help onClose={closePanel} />}
      {panels.shown !== 'drawer' && <Toasts />}
    </div>
  )
}

/** The same function each time, because a dialog opens again when it changes. */
const closePanel = () => openPanel(null)

/** What the page does behind its views. It is a component of its own, so that news don't render the frame again. */
function Background() {
  useRunNotifications()
  useTitleCount(useOpenCount())
  return null
}

/** The top bar on phones. */
function TopBar() {
  const { open } = usePanels()
  return (
    <header className="flex items-center justify-between border-b border-line bg-canvas px-1.5 pt-[env(safe-area-inset-top)] md:hidden">
      <IconButton label={text.shell.navigation} onClick={() => open('drawer')}>
        <MenuIcon size={20} aria-hidden />
      </IconButton>
      <span className="text-sm font-semibold tracking-tight" aria-hidden>
        {text.common.app}
      </span>
      <IconButton label={text.search.title} onClick={() => open('palette')}>
        <Search size={19} aria-hidden />
      </IconButton>
    </header>
  )
}

function OfflineBanner() {
  const online = useOnline()
  return (
    <div role="status">
      {online || (
        <p className="flex items-center justify-center gap-2 bg-warn-soft px-4 py-2 text-sm text-warn">
          <WifiOff size={16} aria-hidden />
          {text.shell.offline}
        </p>
      )}
    </div>
  )
}

function SkipLink() {
  return (
    <button
      type="button"
      onClick={focusMain}
      className="fixed top-2 left-2 z-50 -translate-y-16 rounded-lg bg-accent px-4 py-2 text-sm font-medium text-accent-ink focus:translate-y-0"
    >
      {text.shell.skip}
    </button>
  )
}

/** Move the focus past the sidebar to the view. */
function focusMain(): void {
  const main = document.querySelector('main')
  if (!main) return
  main.tabIndex = -1
  main.focus()
}

function useKeys(): void {
  const { open, toggleSidebar } = usePanels()
  const [, go] = useLocation()
  useShortcut(useActionKeys('conversations'), text.search.title, () => open('palette'))
  useShortcut('?', text.keys.title, () => open('help'))
  useShortcut(useActionKeys('new'), text.sidebar.newConversation, () => go('/'))
  useShortcut('I', text.sidebar.inbox, () => go('/inbox'))
  useShortcut('U', text.sidebar.usage, () => go('/usage'))
  useShortcut('B', text.keys.toggleSidebar, toggleSidebar)
  useShortcut('T', text.keys.nextTheme, () => {
    const next = THEMES[(THEMES.indexOf(chosen()) + 1) % THEMES.length] ?? 'system'
    choose(next)
    notify(text.theme.chosen(text.theme.names[next]))
  })
  useShortcut('F6', text.keys.nextRegion, nextRegion)
}

/** Move the focus between sidebar, view and message field. */
function nextRegion(): void {
  const regions = [
    `nav[aria-label="${text.sidebar.conversations}"]`,
    'main',
    'main textarea, main [contenteditable=true]',
  ]
    .map((selector) => document.querySelector<HTMLElement>(selector))
    .filter((element): element is HTMLElement => element !== null && element.offsetParent !== null)
  const at = regions.findLastIndex((element) => element.contains(document.activeElement))
  const next = regions[(at + 1) % regions.length]
  if (next && next.tabIndex < 0) next.tabIndex = -1
  next?.focus()
}
