export function Nowhere() {
  return (
    <div class="empty">
      <p>This screen is not there.</p>
      <a href="/">Go to the Library</a>
    </div>
  );
}
