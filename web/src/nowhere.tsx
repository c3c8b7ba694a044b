import { link } from './route';

export function Nowhere() {
  return (
    <div class="empty">
      <p>This screen is not there.</p>
      <a href={link([])}>Go to the Library</a>
    </div>
  );
}
