import { clsx } from 'clsx'
import {
  ChartNoAxesColumn,
  CircleHelp,
  CloudOff,
  Inbox,
  type LucideIcon,
  PanelLeftClose,
  Search,
  Settings,
  SquarePen,
  X,
} from 'lucide-react'
import { type ReactNode, useSyncExternalStore } from 'react'
import { Link, useLocation } from 'wouter'
import { Mark } from '@/app/Mark'
import { usePanels } from '@/app/panels'
import { outbox, wordsOf } from '@/conversation/outbox'
import { useOpenCount } from '@/data/approvals'
import { useProjects } from '@/data/projects'
import { useActionKeys } from '@/keys/configured'
import { written } from '@/keys/shortcuts'
import { ConversationList } from '@/lists/ConversationList'
import { Filters } from '@/lists/Filters'
import { useFilter } from '@/lists/filter'
import { text } from '@/text'
import { ThemeSwitch } from '@/theme/Switch'
import { IconButton } from '@/ui/Button'
import { Keys } from '@/ui/Menu'

/** The sidebar: navigation and the list of conversations. In a phone's drawer, `onClose` closes it. */
export function Sidebar({ onClose }: { onClose?: () => void }) {
  const { open, toggleSidebar } = usePanels()
  const waiting = useOpenCount()
  return (
    <div className="flex w-full min-w-0 flex-col bg-canvas pt-[env(safe-area-inset-top)] pb-[env(safe-area-inset-bottom)]">
      <div className="flex items-center justify-between py-2.5 pr-2 pl-4">
        <Link
          href="/"
          className="flex items-center gap-2.5 rounded-lg text-base font-semibold tracking-tight max-md:min-h-11"
        >
          <Mark />
          {text.common.app}
        </Link>
        {onClose ? (
          <IconButton label={text.common.close} onClick={onClose}>
            <X size={18} aria-hidden />
          </IconButton>
        ) : (
          <IconButton label={text.sidebar.hide} onClick={toggleSidebar}>
            <PanelLeftClose size={17} aria-hidden />
          </IconButton>
        )}
      </div>
      <div className="space-y-0.5 px-2">
        <NavLink
          href="/"
          icon={SquarePen}
          label={text.sidebar.newConversation}
          keys={written(useActionKeys('new')[0] ?? '')}
        />
        <button type="button" onClick={() => open('palette')} className={WAY}>
          <Search size={17} aria-hidden className="text-muted" />
          <span className="grow text-left">{text.common.search}</span>
          <Keys keys={written(useActionKeys('conversations')[0] ?? '')} />
        </button>
        <NavLink href="/inbox" icon={Inbox} label={text.sidebar.inbox}>
          {waiting > 0 && (
            <span className="min-w-5 rounded-full bg-warn px-1.5 text-center text-xs font-semibold text-canvas">
              {waiting}
              <span className="sr-only">{text.sidebar.pending}</span>
            </span>
          )}
        </NavLink>
        <NavLink href="/usage" icon={ChartNoAxesColumn} label={text.sidebar.usage} keys="U" />
        <NotSentElsewhere />
      </div>
      <nav
        aria-label={text.sidebar.conversations}
        className="mt-3 flex min-h-0 grow flex-col border-t border-line pt-2"
      >
        <Shelves />
      </nav>
      <div className="flex items-center gap-1 border-t border-line px-2 py-2">
        <FooterLink href="/settings" icon={Settings} label={text.sidebar.settings} />
        <IconButton label={text.sidebar.shortcuts} onClick={() => open('help')}>
          <CircleHelp size={17} aria-hidden />
        </IconButton>
        <ThemeSwitch className="ml-auto w-36" />
      </div>
    </div>
  )
}

/** Links to conversations with unsent prompts. A new conversation that never reached the server is not in the list below. */
function NotSentElsewhere() {
  const [location] = useLocation()
  const all = useSyncExternalStore(outbox.subscribe, outbox.get)
  const byPlace = new Map(all.map((entry) => [`/c/${encodeURIComponent(entry.conversation)}`, entry]))
  byPlace.delete(location)
  return [...byPlace].map(([place, entry]) => (
    <Link key={place} href={place} className={clsx(WAY, 'text-danger')}>
      <CloudOff size={17} aria-hidden className="shrink-0" />
      <span className="min-w-0 truncate">{text.outbox.elsewhere(wordsOf(entry))}</span>
    </Link>
  ))
}

const WAY =
  'flex min-h-9 w-full cursor-pointer items-center gap-3 rounded-lg px-2.5 text-sm text-ink hover:bg-hover aria-[current=page]:bg-accent-soft max-md:min-h-11'

function NavLink({
  href,
  icon: Icon,
  label,
  keys,
  children,
}: {
  href: string
  icon: LucideIcon
  label: string
  keys?: string
  children?: ReactNode
}) {
  const [location] = useLocation()
  return (
    <Link href={href} aria-current={location === href ? 'page' : undefined} className={WAY}>
      <Icon size={17} aria-hidden className="text-muted" />
      <span className="grow">{label}</span>
      {children}
      {keys && <Keys keys={keys} />}
    </Link>
  )
}

function FooterLink({ href, icon: Icon, label }: { href: string; icon: LucideIcon; label: string }) {
  return (
    <Link
      href={href}
      aria-label={label}
      title={label}
      className="grid size-8 place-items-center rounded-lg text-muted hover:bg-hover hover:text-ink max-md:size-11"
    >
      <Icon size={17} aria-hidden />
    </Link>
  )
}

/** The filters and the list of conversations. */
function Shelves() {
  const chosen = useFilter()
  const projects = useProjects()
  const isKnown = !chosen.project || !projects.length || projects.some((project) => project.id === chosen.project)
  const filter = isKnown ? chosen : { ...chosen, project: '' }
  return (
    <>
      <h2 className="sr-only">{text.sidebar.conversations}</h2>
      <Filters filter={filter} projects={projects} />
      <ConversationList key={JSON.stringify(filter)} filter={filter} />
    </>
  )
}
